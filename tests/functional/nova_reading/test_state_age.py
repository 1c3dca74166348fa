# SPDX-License-Identifier: Apache-2.0
"""Since when: the clock that an owner cannot turn back."""

from __future__ import annotations

import datetime
from typing import Any

import sqlalchemy as sa
from nova import exception
from nova.db.main import models
from oslo_utils import timeutils

from state_policy.engine.facts import Age
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.nova_reading.reading import ReadingTestCase, caller_of

HOUR = 3600


class TestStateAge(ReadingTestCase):
    def age(self, server: str) -> Age:
        found = self.fact(server, "server.state_age")
        assert isinstance(found, Age)
        return found

    def assert_age(
        self, server: str, seconds: float, exact: bool = True
    ) -> None:
        found = self.age(server)
        assert seconds <= found.seconds < seconds + 60, found
        assert found.exact is exact, found

    def began(self, server: str, action: str, minutes: float) -> None:
        """Write an action that began so many minutes ago."""
        at = timeutils.utcnow() - datetime.timedelta(minutes=minutes)
        surgery.execute(
            server,
            sa.insert(models.InstanceAction.__table__).values(
                instance_uuid=server,
                action=action,
                request_id=f"req-{action}-{minutes}",
                user_id="owner",
                project_id=base.OWNER_PROJECT,
                start_time=at,
                created_at=at,
                updated_at=at,
                deleted=0,
            ),
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
        self.ask("PUT", f"/servers/{server}", {"server": {"name": "again"}})
        self.ask("PUT", f"/servers/{server}/metadata", {"metadata": {}})
        self.act(server, "lock")
        self.act(server, "unlock")
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
        table = models.InstanceAction.__table__
        surgery.execute(
            server,
            sa.update(table)
            .where(table.c.action == "delete")
            .values(message="Error"),
        )
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

    def test_error_counts_from_the_fault(self) -> None:
        """A failed build is not marked as an error in its action."""

        def fail(*_: Any, **__: Any) -> None:
            raise exception.NovaException("no")

        self.stub_out("nova.virt.fake.FakeDriver.spawn", fail)
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

    def failed_operation_leaves_the_state(self) -> None:
        server = self.boot()
        surgery.make_older(server, hours=5)
        self.began(server, "resize", 60)
        table = models.InstanceAction.__table__
        surgery.execute(
            server,
            sa.update(table)
            .where(table.c.action == "resize")
            .values(message="Error"),
        )
        self.assert_age(server, HOUR)

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
        with self.statements(every_thread=True) as statements:
            self.driver.circumstances(caller_of(base.OWNER), location)
        assert sum(statements.selects().values()) <= 3
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
