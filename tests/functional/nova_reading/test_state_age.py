# SPDX-License-Identifier: Apache-2.0
"""Since when: the clock that an owner cannot turn back."""

from __future__ import annotations

import datetime
import time
from typing import Any

import sqlalchemy as sa
from nova import exception
from nova.compute import instance_actions
from nova.db.main import models
from oslo_utils import timeutils

from state_policy.drivers.nova.facts import changing
from state_policy.engine.facts import Age
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.reading import Circumstances
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.nova_reading import requests
from tests.functional.nova_reading.reading import ReadingTestCase, caller_of
from tests.functional.nova_reading.test_native import constants

HOUR = 3600

#: More than anybody would read of the actions of one server.
MANY = 204

#: What Nova writes down for an owner who asks it while it deletes a server
#: (34.0.0). The second DELETE is taken and leaves no action.
WHILE_DELETING = {"lock", "unlock"}


class TestStateAge(ReadingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.started = time.monotonic()

    def age(self, server: str) -> Age:
        found = self.fact(server, "server.state_age")
        assert isinstance(found, Age)
        return found

    def assert_age(
        self, server: str, seconds: float, exact: bool = True
    ) -> None:
        found = self.age(server)
        lasted = time.monotonic() - self.started
        assert seconds <= found.seconds < seconds + 60 + lasted, found
        assert found.exact is exact, found

    def began(
        self, server: str, action: str, minutes: float, count: int = 1
    ) -> None:
        """Write actions that began so many minutes ago, a second apart."""
        first = timeutils.utcnow() - datetime.timedelta(minutes=minutes)
        dates = [
            first + datetime.timedelta(seconds=place) for place in range(count)
        ]
        values = [
            {
                "instance_uuid": server,
                "action": action,
                "request_id": f"req-{action}-{minutes}-{place}",
                "user_id": "owner",
                "project_id": base.OWNER_PROJECT,
                "start_time": at,
                "created_at": at,
                "updated_at": at,
                "deleted": 0,
            }
            for place, at in enumerate(dates)
        ]
        table = models.InstanceAction.__table__
        surgery.execute(server, sa.insert(table).values(values))

    def failed(self, server: str, action: str) -> None:
        """Let all of these actions have ended in an error."""
        table = models.InstanceAction.__table__
        surgery.execute(
            server,
            sa.update(table)
            .where(table.c.instance_uuid == server, table.c.action == action)
            .values(message="Error"),
        )

    def test_clock(self) -> None:
        """One Nova for all."""
        for check in (
            self.owner_who_renames_does_not_make_it_young,
            self.delete_after_another_operation_starts_anew,
            self.delete_that_failed_is_over,
            self.task_counts_from_the_action_that_fits_it,
            self.change_without_an_action_is_a_lower_bound,
            self.failed_operation_leaves_the_state,
        ):
            check()

    def test_storms(self) -> None:
        """Who repeats something cannot push out what the clock needs."""
        for check in (
            self.storm_of_what_changes_no_state,
            self.storm_of_deletes,
            self.storm_of_deletes_that_fail,
            self.actions_that_were_written_backwards,
        ):
            check()

    def test_building(self) -> None:
        """One Nova for both."""
        for check in (
            self.build,
            self.build_that_is_being_deleted_counts_from_the_delete,
        ):
            check()

    def owner_who_renames_does_not_make_it_young(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=2)
        self.assert_age(server, 2 * HOUR)
        for number in range(20):  # test_storms has the large numbers
            self.ask(
                "PUT", f"/servers/{server}", {"server": {"name": f"{number}"}}
            )
            self.ask("PUT", f"/servers/{server}/metadata", {"metadata": {}})
            assert self.act(server, "lock").status == 202
            assert self.act(server, "unlock").status == 202
        assert len(surgery.actions(server)) > 40
        changed = surgery.row(server)["updated_at"]
        assert (timeutils.utcnow() - changed).total_seconds() < 60
        self.assert_age(server, 2 * HOUR)

    def build(self) -> None:
        server, hold = self.boot_held()
        surgery.make_older(server, hours=1)
        self.ask("PUT", f"/servers/{server}", {"server": {"name": "again"}})
        self.assert_age(server, HOUR)
        hold.release()
        hold.wait_left()

    def build_that_is_being_deleted_counts_from_the_delete(self) -> None:
        server, _ = self.boot_held()
        surgery.make_older(server, hours=5)
        assert self.delete(server).status == 204
        self.wait_task(server, "deleting")
        self.assert_age(server, 0)
        surgery.make_older(server, hours=1)
        self.assert_age(server, HOUR)
        # Locks and resets do not end the attempt, nor does another delete.
        self.act(server, "lock", who=base.OPERATOR)
        self.act(server, "unlock", who=base.OPERATOR)
        self.act(
            server,
            {"os-resetState": {"state": "error"}},
            who=base.OPERATOR,
        )
        self.delete(server)
        self.wait_task(server, "deleting")
        facts = self.read(server, "server.state_age", "server.attempts")
        assert HOUR <= facts["server.state_age"].seconds < HOUR + 60
        assert facts["server.attempts"] == 1

    def delete_after_another_operation_starts_anew(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=5)
        self.began(server, "delete", 120)
        self.began(server, "reboot", 60)
        self.began(server, "delete", 30)
        surgery.set_row(server, task_state="deleting")
        self.assert_age(server, 30 * 60)

    def delete_that_failed_is_over(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=5)
        self.began(server, "delete", 240)
        self.failed(server, "delete")
        self.began(server, "delete", 30)
        surgery.set_row(server, task_state="deleting")
        self.assert_age(server, 30 * 60)

    def task_counts_from_the_action_that_fits_it(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=5)
        self.began(server, "createImage", 40)
        self.began(server, "attach_volume", 10)
        surgery.set_row(server, task_state="image_uploading")
        self.assert_age(server, 40 * 60)

    def change_without_an_action_is_a_lower_bound(self) -> None:
        """A guest that shuts itself down leaves no action."""
        server = self.boot()
        surgery.make_older(server, hours=5)
        at = timeutils.utcnow() - datetime.timedelta(minutes=7)
        surgery.set_row(server, vm_state="stopped", updated_at=at)
        self.assert_age(server, 7 * 60, exact=False)
        # The same for a task that no action explains.
        surgery.set_row(server, task_state="rescuing", updated_at=at)
        self.assert_age(server, 7 * 60, exact=False)

    def test_error(self) -> None:
        """One Nova for both."""
        running = self.boot()
        self.error_counts_from_the_fault()
        self.error_without_a_trace_is_a_lower_bound(running)

    def fail(self, step: str, error: Exception) -> None:
        """Let a step of the virt driver fail."""

        def failing(*_: Any, **__: Any) -> None:
            raise error

        self.stub_out(f"nova.virt.fake.FakeDriver.{step}", failing)

    def error_counts_from_the_fault(self) -> None:
        """A failed build is not marked as an error in its action."""
        self.fail("spawn", exception.NovaException("no"))
        server = self.boot(expected="ERROR")
        surgery.make_older(server, hours=9)
        table = models.InstanceFault.__table__
        at = timeutils.utcnow() - datetime.timedelta(hours=8)
        assert surgery.execute(server, sa.select(table))
        surgery.execute(server, sa.update(table).values(created_at=at))
        self.ask("PUT", f"/servers/{server}", {"server": {"name": "again"}})
        self.assert_age(server, 8 * HOUR)
        self.act(
            server,
            {"os-resetState": {"state": "error"}},
            who=base.OPERATOR,
        )
        self.assert_age(server, 0)
        self.act(
            server,
            {"os-resetState": {"state": "active"}},
            who=base.OPERATOR,
        )
        surgery.make_older(server, minutes=10)
        self.assert_age(server, 600)

    def error_without_a_trace_is_a_lower_bound(self, server: str) -> None:
        """As a compute service sets it that cannot plug the interfaces."""
        surgery.make_older(server, hours=40 * 24)
        self.fail("plug_vifs", exception.VirtualInterfacePlugException())
        self.restart_compute_service(self.computes["compute"])
        assert surgery.row(server)["vm_state"] == "error"
        assert len(surgery.actions(server)) == 1
        self.assert_age(server, 0, exact=False)
        # A fault from before an operation that went well says nothing.
        self.faulted(server, minutes=90)
        self.began(server, "reboot", 60)
        self.assert_age(server, 0, exact=False)
        self.faulted(server, minutes=30)
        self.assert_age(server, 30 * 60)
        self.began(server, "rebuild", 20)
        self.failed(server, "rebuild")
        self.assert_age(server, 20 * 60)

    def faulted(self, server: str, minutes: float) -> None:
        """Write a fault of so many minutes ago."""
        at = timeutils.utcnow() - datetime.timedelta(minutes=minutes)
        surgery.execute(
            server,
            sa.insert(models.InstanceFault.__table__).values(
                instance_uuid=server, code=500, created_at=at, deleted=0
            ),
        )

    def failed_operation_leaves_the_state(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=5)
        self.began(server, "resize", 60)
        self.failed(server, "resize")
        self.assert_age(server, HOUR)

    def storm_of_what_changes_no_state(self) -> None:
        """Whatever the action is, and whatever the server does."""
        names = constants(instance_actions) - changing.CHANGING
        assert names > {"lock", "attach_volume", "extend_volume"}
        for action, state in (
            ("createImage", {"task_state": "image_uploading"}),
            ("reboot", {"task_state": "reboot_started"}),
            ("delete", {"task_state": "deleting"}),
            ("pause", {"vm_state": "paused"}),
        ):
            server = self.boot()
            surgery.make_older(server, hours=5)
            self.began(server, action, 120)
            surgery.set_row(server, **state)
            for name in names:
                self.began(server, name, 60, count=MANY)
            self.assert_age(server, 2 * HOUR)
            found = self.around(server)
            assert found.action == action
            assert found.request_id == f"req-{action}-120-0"

    def storm_of_deletes(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=9)
        self.began(server, "reboot", 480)
        self.began(server, "delete", 480)
        self.began(server, "delete", 300, count=MANY)
        self.began(server, "resetState", 240, count=MANY)
        self.began(server, "delete", 180, count=MANY)
        surgery.set_row(server, task_state="deleting")
        self.assert_age(server, 8 * HOUR)
        assert self.fact(server, "server.attempts") == MANY
        assert self.around(server).request_id == "req-delete-480-0"

    def storm_of_deletes_that_fail(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=9)
        self.began(server, "delete", 480, count=MANY)
        self.failed(server, "delete")
        self.began(server, "delete", 120, count=MANY)
        surgery.set_row(server, task_state="deleting")
        self.assert_age(server, 2 * HOUR)
        # The newest belongs to its attempt, however it ended.
        self.failed(server, "delete")
        self.began(server, "delete", 60, count=1)
        self.failed(server, "delete")
        self.assert_age(server, HOUR)

    def actions_that_were_written_backwards(self) -> None:
        """As a move to another cell writes them (Nova, cross-cell resize)."""
        server = self.boot()
        surgery.make_older(server, hours=9)
        for action, minutes in (
            ("delete", 60),
            ("delete", 120),
            ("reboot", 240),
            ("delete", 360),
        ):
            self.began(server, action, minutes)
        surgery.set_row(server, task_state="deleting")
        self.assert_age(server, 2 * HOUR)

    def around(self, server: str) -> Circumstances:
        """Return what its owner is told beside the facts."""
        return self.driver.circumstances(
            caller_of(base.OWNER), self.locate(server)
        )

    def test_whatever_an_owner_asks_while_it_is_deleted(self) -> None:
        """The clock counts from the first delete."""
        server = self.boot()
        self.hold("destroy")
        assert self.delete(server).status == 204
        self.wait_task(server, "deleting")
        surgery.make_older(server, hours=2)
        before = len(surgery.actions(server))
        taken = set()
        for name, operation in OPERATIONS.items():
            if "read" in operation.classes:
                continue
            answer = self.ask(
                operation.method,
                requests.path(operation, server),
                requests.body(operation),
                microversion=requests.microversion(operation),
            )
            if answer.status < 300:
                taken.add(name)
        assert {"delete", "force_delete", "lock", "unlock"} <= taken
        written = surgery.actions(server)[before:]
        assert {a["action"] for a in written} == WHILE_DELETING
        self.assert_age(server, 2 * HOUR)
        assert self.fact(server, "server.attempts") == 0

    def test_circumstances(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=2)
        hold = self.hold("snapshot")
        self.act(server, {"createImage": {"name": "i"}})
        hold.wait_reached()
        surgery.make_older(server, minutes=3)
        self.act(server, {"lock": {"locked_reason": "audit"}})
        location = self.locate(server)
        found = self.driver.circumstances(caller_of(base.OWNER), location)
        assert found.action == "createImage"
        (action,) = [
            a for a in surgery.actions(server) if a["action"] == "createImage"
        ]
        assert found.request_id == action["request_id"]
        assert found.since is not None and 180 <= found.since < 240
        assert found.locked_reason == "audit"
        counts = []
        for _ in range(3):  # a service may say just now that it is alive
            with self.statements(every_thread=True) as statements:
                self.driver.circumstances(caller_of(base.OWNER), location)
            counts.append(sum(statements.selects().values()))
        assert min(counts) <= 3
        # A caller to whom Nova shows nothing is told nothing.
        for stranger in (base.FOREIGNER, base.NOBODY):
            none = self.driver.circumstances(caller_of(stranger), location)
            assert none == type(none)(), stranger
        # An action that another tool forbids to read is not told.
        self.policy.set_rules(
            {"os_compute_api:os-instance-actions:list": "role:admin"},
            overwrite=False,
        )
        less = self.driver.circumstances(caller_of(base.OWNER), location)
        assert less.action is None and less.request_id is None
        assert less.since is not None
