# SPDX-License-Identifier: Apache-2.0
"""Every fact against real servers: in a cell, in cell0, as build request."""

from __future__ import annotations

import datetime
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest import mock

import nova.conf
import psycopg2.extensions
import pytest
import sqlalchemy as sa
from nova import objects, thread_pool_factory
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models
from oslo_db import exception as db_exception
from oslo_utils import timeutils, uuidutils

from state_policy.drivers.nova import Driver, cells
from state_policy.drivers.nova.facts.reader import SERVER_KEYS
from state_policy.engine.facts import CALLER, Age
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.nova_reading.reading import ReadingTestCase, caller_of

NOTHING_YET = {
    "server.host": None,
    "server.host_up": None,
    "server.hypervisor": None,
    "server.running": None,
    "server.running_age": None,
    "server.migration": None,
    "server.aggregate": frozenset(),
}


class TestInACell(ReadingTestCase):
    def test_in_a_cell(self) -> None:
        """One Nova for all: starting it takes longest."""
        for check in (
            self.every_fact_of_a_plain_server,
            self.capitals_and_forms_of_the_id,
            self.user_that_the_mapping_does_not_know,
            self.deleted_server_has_no_facts,
            self.sources_that_cannot_be_read_are_left_out,
            self.host_down_and_host_gone,
        ):
            check()

    def every_fact_of_a_plain_server(self) -> None:
        server = self.boot()
        facts = self.read(server, *SERVER_KEYS)
        assert facts.keys() == SERVER_KEYS | {CALLER}
        ages = {k: facts.pop(k) for k in ("server.age", "server.state_age")}
        for age in ages.values():
            assert isinstance(age, Age) and age.exact
            assert 0 <= age.seconds < 60
        row = surgery.row(server)
        assert facts.pop(CALLER)["target"] == {
            "project_id": base.OWNER_PROJECT,
            "user_id": "owner",
        }
        assert facts == {
            "server.vm_state": "active",
            "server.task_state": None,
            "server.power_state": "running",
            "server.launched": True,
            "server.locked": False,
            "server.disable_terminate": False,
            "server.host": "compute",
            "server.image": row["image_ref"],
            "server.cell_up": True,
            "server.attempts": 0,
            "server.running": None,
            "server.running_age": None,
            "server.host_up": True,
            "server.hypervisor": "fake",
            "server.az": "nova",
            "server.aggregate": frozenset(),
            "server.flavor": frozenset({"m1.tiny", "1"}),
            "server.volumes": frozenset(),
            "server.volume_backed": False,
            "server.metadata": frozenset(),
            "server.tag": frozenset(),
            "server.migration": None,
        }

    def test_an_image_in_capitals_is_the_same(self) -> None:
        server = self.boot()
        image = surgery.row(server)["image_ref"]
        typed = image.upper()
        assert typed != image
        assert uuidutils.is_uuid_like(typed)  # as Nova's schema asks
        surgery.set_row(server, image_ref=typed)
        assert self.fact(server, "server.image") == image

    def test_values_that_owners_and_operators_give(self) -> None:
        # Before the server: a host with servers stays in its zone.
        self.put_into_aggregate("racks", "north")
        server = self.boot()
        self.ask(
            "POST",
            f"/servers/{server}/metadata",
            {"metadata": {"tier": "gold", "note": "a=b"}},
        )
        self.ask("PUT", f"/servers/{server}/tags/blue")
        self.act(server, "lock")
        self.give_volume(server, boot_index=0)
        self.give_volume(server, boot_index=None)
        self.give_migration(server, "live-migration", "running")
        self.give_migration(server, "evacuation", "accepted")
        for over in ("completed", "error", "finished"):
            self.give_migration(server, "resize", over)
        surgery.set_row(server, disable_terminate=True, power_state=4)
        facts = self.read(server, *SERVER_KEYS)
        assert facts["server.metadata"] == {"tier=gold", "note=a=b"}
        assert facts["server.tag"] == {"blue"}
        assert facts["server.locked"] is True
        assert facts["server.az"] == "north"
        assert "racks" in facts["server.aggregate"]
        assert len(facts["server.aggregate"]) == 2  # its name and its id
        assert len(facts["server.volumes"]) == 2
        assert facts["server.volume_backed"] is True
        assert facts["server.migration"] == {"live-migration", "evacuation"}
        assert facts["server.disable_terminate"] is True
        assert facts["server.power_state"] == "shutdown"

    def put_into_aggregate(self, name: str, zone: str) -> None:
        found = self.operator.post_aggregate(
            {"aggregate": {"name": name, "availability_zone": zone}}
        )
        self.operator.add_host_to_aggregate(found["id"], "compute")

    def give_volume(self, server: str, boot_index: int | None) -> None:
        surgery.execute(
            server,
            sa.insert(models.BlockDeviceMapping.__table__).values(
                instance_uuid=server,
                uuid=str(uuid.uuid4()),
                source_type="volume",
                destination_type="volume",
                volume_id=str(uuid.uuid4()),
                boot_index=boot_index,
                deleted=0,
            ),
        )

    def give_migration(self, server: str, kind: str, status: str) -> None:
        surgery.execute(
            server,
            sa.insert(models.Migration.__table__).values(
                instance_uuid=server,
                uuid=str(uuid.uuid4()),
                migration_type=kind,
                status=status,
                deleted=0,
            ),
        )

    def host_down_and_host_gone(self) -> None:
        server = self.boot()
        self.force_down()
        assert self.fact(server, "server.host_up") is False
        self.force_down(down=False)
        assert self.fact(server, "server.host_up") is True
        table = models.Service.__table__
        of_host = table.c.binary == "nova-compute"
        long_ago = timeutils.utcnow() - datetime.timedelta(hours=1)
        surgery.execute(
            server,
            sa.update(table).where(of_host).values(last_seen_up=long_ago),
        )
        assert self.fact(server, "server.host_up") is False
        surgery.execute(
            server, sa.update(table).where(of_host).values(deleted=1)
        )
        assert self.fact(server, "server.host_up") is False
        surgery.set_row(server, host=None)
        facts = self.read(server, "server.host_up", "server.hypervisor")
        assert facts["server.host_up"] is None
        assert facts["server.hypervisor"] is None

    def test_what_runs(self) -> None:
        server, hold = self.boot_held()
        surgery.make_older(server, minutes=90)
        facts = self.read(server, "server.running", "server.running_age")
        assert facts["server.running"] == {"create"}
        assert 5400 <= facts["server.running_age"].seconds < 5460
        # A compute service that dies leaves the event unfinished for ever:
        # it counts only while there is something to be built.
        surgery.set_row(server, vm_state="active")
        assert self.fact(server, "server.running") is None
        surgery.set_row(server, vm_state="building")
        hold.release()
        self.wait_task(server, None)
        self.wait_for(
            lambda: self.fact(server, "server.running") is None, "finished"
        )

    def sources_that_cannot_be_read_are_left_out(self) -> None:
        server = self.boot()
        rename = "ALTER TABLE {} RENAME TO {}"
        surgery.execute(server, sa.text(rename.format("tags", "gone")))
        facts = self.read(server, "server.tag", "server.flavor")
        surgery.execute(server, sa.text(rename.format("gone", "tags")))
        assert "server.tag" not in facts
        assert "tiny" in str(facts["server.flavor"])

    def deleted_server_has_no_facts(self) -> None:
        server = self.boot()
        self.delete(server)
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        assert self.read(server, *SERVER_KEYS).keys() == {CALLER}
        assert not self.driver.may(
            caller_of(base.OWNER),
            self.locate(server),
            "os_compute_api:servers:delete",
        )

    def user_that_the_mapping_does_not_know(self) -> None:
        server = self.boot()
        table = api_models.InstanceMapping.__table__
        with api_db.get_engine().begin() as connection:
            connection.execute(sa.update(table).values(user_id=None))
        assert self.locate(server).user_id is None
        facts = self.read(server, CALLER)
        assert facts[CALLER]["target"]["user_id"] == "owner"

    def capitals_and_forms_of_the_id(self) -> None:
        server = self.boot()
        asked = {
            server.upper(): None,  # SQLite compares byte for byte
            server.replace("-", ""): None,
            f"{{{server}}}": None,
            "x": None,
            server: server,
        }
        for text, expected in asked.items():
            found = self.driver.locate(text)
            assert (found and found.server_id) == expected, text
            answer = self.ask("GET", f"/servers/{text}")
            assert (answer.status == 200) is (expected is not None), text


class TestInCell0(ReadingTestCase):
    def test_every_fact(self) -> None:
        self.force_down()
        server = self.boot(expected="ERROR")
        assert self.locate(server).handle.cell.name == "cell0"
        facts = self.read(server, *SERVER_KEYS)
        assert facts.keys() == SERVER_KEYS | {CALLER}
        assert facts["server.vm_state"] == "error"
        assert facts["server.task_state"] is None
        assert facts["server.launched"] is False
        assert facts["server.cell_up"] is True
        assert "tiny" in str(facts["server.flavor"])
        for key, expected in NOTHING_YET.items():
            assert facts[key] == expected, key


class TestBuildRequest(ReadingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.stub_out(
            "nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances",
            lambda *_, **__: None,
        )

    def test_build_request(self) -> None:
        """One Nova for all."""
        for check in (
            self.every_fact,
            self.mapping_without_anything_is_no_server,
            self.text_that_postgresql_does_not_have,
            self.request_that_goes_between_two_looks,
        ):
            check()

    def every_fact(self) -> None:
        body = self._build_server(networks="none", az="nova")
        body["metadata"] = {"tier": "gold"}
        server = self.owner.post_server({"server": body})["id"]
        location = self.locate(server)
        assert location.build_request and location.handle.cell is None
        with self.statements(every_thread=True) as statements:
            facts = self.read(server, *SERVER_KEYS)
        assert statements.selects()["api"] == 2
        assert facts.keys() == SERVER_KEYS | {CALLER}
        assert facts["server.vm_state"] == "building"
        assert facts["server.task_state"] == "scheduling"
        assert facts["server.launched"] is False
        assert facts["server.locked"] is False
        assert facts["server.metadata"] == {"tier=gold"}
        assert facts["server.flavor"] == {"m1.tiny", "1"}
        assert facts["server.az"] == "nova"
        assert facts["server.tag"] == frozenset()
        assert facts["server.volumes"] == frozenset()
        assert facts["server.volume_backed"] is False
        assert facts["server.cell_up"] is True
        assert facts["server.attempts"] == 0
        for key in ("server.age", "server.state_age"):
            assert facts[key].exact and facts[key].seconds < 60
        for key, expected in NOTHING_YET.items():
            assert facts[key] == expected, key
        around = self.driver.circumstances(caller_of(base.OWNER), location)
        assert around.since is not None and around.action is None

    def text_that_postgresql_does_not_have(self) -> None:
        def row(text: str) -> Any:
            # What its driver does with every text of a statement.
            return psycopg2.extensions.QuotedString(text).getquoted()

        with mock.patch("state_policy.drivers.nova.locate._row", row):
            assert self.driver.locate("\0" * 36) is None

    def mapping_without_anything_is_no_server(self) -> None:
        server = self.boot(expected=None)
        objects.BuildRequest.get_by_instance_uuid(
            self.admin(), server
        ).destroy()
        with self.statements(every_thread=True) as statements:
            assert self.driver.locate(server) is None
        assert statements.selects()["api"] == 2  # the mapping, once more

    def request_that_goes_between_two_looks(self) -> None:
        server = self.boot(expected=None)
        location = self.locate(server)
        objects.BuildRequest.get_by_instance_uuid(
            self.admin(), server
        ).destroy()
        who = caller_of(base.OWNER)
        assert self.driver.read(who, location, SERVER_KEYS).keys() == {CALLER}
        assert self.driver.circumstances(who, location).since is None


class TestCellDown(ReadingTestCase):
    def test_cell_down(self) -> None:
        """One Nova for all, a driver for each."""
        for check in (
            self.full_pool_says_nothing_of_the_cell,
            self.cell_that_hangs_costs_its_budget_once,
            self.cell_that_refuses,
        ):
            self.driver = Driver()
            check()

    def cell_that_refuses(self) -> None:
        server = self.boot()
        location = self.locate(server)
        who = caller_of(base.OWNER)

        def refuse(*_: Any) -> None:
            raise db_exception.DBConnectionError()

        self.stub_out("state_policy.drivers.nova.server.load", refuse)
        self.check_down(who, location)

    def cell_that_hangs_costs_its_budget_once(self) -> None:
        server = self.boot()
        location = self.locate(server)
        who = caller_of(base.OWNER)
        hanging: list[object] = []

        def hang(*_: Any) -> Any:
            hanging.append(object())
            self.released.wait(30)

        self.released = threading.Event()
        self.addCleanup(self.released.set)
        self.stub_out("state_policy.drivers.nova.server.load", hang)
        self.driver._cells._budget = 0.3
        began = timeutils.now()
        self.check_down(who, location)
        assert timeutils.now() - began < 2
        assert len(hanging) == 1
        self.released.set()

    def full_pool_says_nothing_of_the_cell(self) -> None:
        server = self.boot()
        location = self.locate(server)
        who = caller_of(base.OWNER)
        released = threading.Event()
        self.addCleanup(released.set)
        pool = thread_pool_factory
        for _ in range(nova.conf.CONF.cell_worker_thread_pool_size):
            pool.spawn_on(pool.ExecutorType.SCATTER_GATHER, released.wait, 30)
        self.driver._cells._budget = 0.3
        facts = self.driver.read(who, location, SERVER_KEYS)
        assert facts.keys() == {CALLER}
        # Whose it is the mapping tells, and the request waits but once.
        began = timeutils.now()
        gate = "os_compute_api:servers:delete"
        assert self.driver.may(who, location, gate) is True
        stranger = caller_of(base.FOREIGNER)
        assert self.driver.may(stranger, location, gate) is False
        assert timeutils.now() - began < 0.3
        released.set()
        facts = self.driver.read(who, self.locate(server), SERVER_KEYS)
        assert facts.keys() == SERVER_KEYS | {CALLER}

    def check_down(self, who: Any, location: Any) -> None:
        facts = self.driver.read(who, location, SERVER_KEYS)
        assert facts.keys() == {CALLER, "server.cell_up"}
        assert facts["server.cell_up"] is False
        # Whose it is the mapping tells.
        assert facts[CALLER]["target"]["user_id"] == "owner"
        gate = "os_compute_api:servers:delete"
        assert self.driver.may(who, location, gate) is True
        foreigner = caller_of(base.FOREIGNER)
        assert self.driver.may(foreigner, location, gate) is False
        location.handle.queued_for_delete = True
        assert self.driver.may(who, location, gate) is None
        assert self.driver.may(foreigner, location, gate) is False
        assert self.driver.circumstances(who, location).action is None
        with pytest.raises(cells.CellDownError):
            self.driver._facts.server(location)


class TestStatements(ReadingTestCase):
    """What reading costs, in SELECTs by database."""

    def cost(self, server: str, *keys: str) -> dict[str, int]:
        return self.least(lambda: self.read(server, *keys))

    def least(self, read: Callable[[], Any]) -> dict[str, int]:
        """Return the SELECTs of a reading, without those of other threads.

        All are counted, since cells are read in Nova's pool, and now and
        then a service says that it is alive.
        """
        found = []
        for _ in range(3):
            with self.statements(every_thread=True) as statements:
                read()
            found.append(Counter(statements.selects()))
        first, second, third = found
        return dict(first & second & third)

    def test_cost(self) -> None:
        """One Nova for all."""
        for check in (
            self.one_select_a_relation,
            self.rights_and_facts_share_the_row,
            self.facts_asked_for_twice_are_read_twice,
            self.counts,
        ):
            check()

    def one_select_a_relation(self) -> None:
        server = self.boot()
        common = {"server.vm_state", "server.task_state", "server.age"}
        assert self.cost(server, CALLER) == {"api": 1}
        assert self.cost(server, *common) == {"api": 1, "cell1": 1}
        for key in sorted(SERVER_KEYS):
            cost = self.cost(server, *common, key)
            assert sum(cost.values()) <= 3, (key, cost)
        assert self.cost(server, "server.state_age", "server.attempts") == {
            "api": 1,
            "cell1": 2,
        }
        assert self.cost(server, *SERVER_KEYS) == {"api": 2, "cell1": 10}

    def rights_and_facts_share_the_row(self) -> None:
        server = self.boot()
        who = caller_of(base.OWNER)
        gate = "os_compute_api:servers:delete"
        keys = frozenset({"server.vm_state"})

        def rights_first() -> None:
            location = self.locate(server)
            assert self.driver.may(who, location, gate)
            self.driver.read(who, location, keys)

        def facts_first() -> None:
            location = self.locate(server)
            self.driver.read(who, location, keys)
            assert self.driver.may(who, location, gate)

        for order in (rights_first, facts_first):
            assert self.least(order) == {"api": 1, "cell1": 1}, order

    def facts_asked_for_twice_are_read_twice(self) -> None:
        """Whoever waits must see the change."""
        server = self.boot()
        who, location = caller_of(base.OWNER), self.locate(server)
        keys = frozenset({"server.vm_state"})
        assert self.driver.may(who, location, "os_compute_api:servers:show")
        self.driver.read(who, location, keys)
        surgery.set_row(server, vm_state="stopped")
        facts = self.driver.read(who, location, keys)
        assert facts["server.vm_state"] == "stopped"
        surgery.set_row(server, vm_state="paused")
        facts = self.driver.read(who, location, keys)
        assert facts["server.vm_state"] == "paused"

    def counts(self) -> None:
        first, second = self.boot(), self.boot()
        self.delete(first)
        self.wait_for(lambda: surgery.row(first)["deleted"], "deleted")
        with self.statements(every_thread=True) as statements:
            assert self.fact(second, "project.deletes:10m") == 1
        assert statements.selects()["api"] == 2
        keys = frozenset({"project.deletes:10m"})
        location = self.locate(second)
        with self.statements(every_thread=True) as statements:
            for _ in range(5):
                self.driver.read(caller_of(base.OWNER), location, keys)
        # Kept for a second: on a slow host more than one may go by.
        assert statements.selects().get("api", 0) < 5
        assert self.fact(second, "cloud.stuck") == 0
        surgery.set_row(second, task_state="deleting")
        surgery.make_older(second, minutes=16)
        self.wait_for(
            lambda: self.fact(second, "cloud.stuck") == 1, "counted anew"
        )
        assert "project.deletes:x" not in self.read(
            second, "project.deletes:x"
        )
