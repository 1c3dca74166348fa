# SPDX-License-Identifier: Apache-2.0
"""The move on real Nova: conceal, settle, purge, release."""

from __future__ import annotations

from state_policy.quarantine.conceal import Result
from state_policy.quarantine.record import Kind
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, OWNER, MoveCase


class TestBlockedBuild(MoveCase):
    """A build that blocks in the hypervisor, concealed, then let go."""

    def test_build_ends_and_is_settled(self) -> None:
        server, hold = self.boot_held()
        self.assertEqual(1, self.used()["instances"])
        answer = self.conceal(server)
        self.assertEqual(Result.MOVED, answer.result, answer.reason)
        self.assert_concealed(server)
        self.assertEqual(KEEPER.project_id, self.charged(server))
        self.assertEqual({"instances": 0, "cores": 0, "ram": 0}, self.used())
        # still running: a sweep changes nothing
        self.assertEqual([], self.swept())
        self.assert_concealed(server)
        hold.release()
        self.wait_task(server, None)
        hold.wait_left()
        self.wait_for(
            lambda: surgery.row(server)["vm_state"] == "active", "active"
        )
        self.wait_for(
            lambda: not self.mover.look(server).running, "nothing runs"
        )
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        self.assertEqual([server], self.guests())
        self.assertEqual(
            [Kind.CONCEAL, Kind.SETTLE],
            [r.kind for r in self.records(server)],
        )
        self.assertEqual((), self.records(server)[-1].stranded)
        self.assertEqual([], self.swept())


class TestBlockedDelete(MoveCase):
    """A delete that blocks in the hypervisor, concealed, then let go."""

    def test_delete_ends_while_hidden(self) -> None:
        server = self.boot()
        hold = self.hold("destroy")
        self.assertEqual(204, self.delete(server).status)
        hold.wait_reached()
        self.assertEqual([server], self.listed())
        answer = self.conceal(server)
        self.assertEqual(Result.MOVED, answer.result, answer.reason)
        self.assert_concealed(server)
        self.assertEqual(0, self.used()["instances"])
        hold.release()
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.assertIn("give back", self.swept())
        self.assertFalse(surgery.row(server)["hidden"])
        self.assertEqual(OWNER.project_id, self.mapped(server))
        self.assertEqual(OWNER.project_id, self.spec_project(server))
        self.wait_for(lambda: not self.guests(), "no guest")
        self.wait_for(lambda: self.charged(server) is None, "no allocation")
        self.assertEqual([], self.swept())


class TestRelease(MoveCase):
    """A settled server goes back, and a concealed one too."""

    def test_both(self) -> None:
        from state_policy.quarantine import record, release

        first, second = self.boot(), self.boot()
        for server in (first, second):
            self.assertEqual(Result.MOVED, self.conceal(server).result)
        seen = self.mover.look(first)
        release.release(self.mover, seen, record.of(seen))
        self.assert_owners(first)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(second)
        seen = self.mover.look(second)
        release.release(self.mover, seen, record.of(seen))
        self.assert_owners(second)
        self.assertEqual({first, second}, set(self.listed()))
        self.assertEqual(2, self.used()["instances"])
        self.assertFalse(surgery.row(second)["locked"])
        self.assertEqual([], self.swept())
        answer = self.delete(second)
        self.assertEqual(204, answer.status)
        self._wait_until_deleted({"id": second})


class TestPurge(MoveCase):
    """A settled server is deleted, by an administrator's ordinary delete."""

    def test_by_retention(self) -> None:
        server = self.boot()
        self.assertEqual(Result.MOVED, self.conceal(server).result)
        self.assertEqual(["settle"], self.swept())
        self.assertEqual([], self.swept())
        from dataclasses import replace

        self.policy = replace(self.policy, retention=0)
        self.assertEqual(["purge"], self.swept())
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.wait_for(lambda: not self.guests(), "no guest")
        self.wait_for(lambda: self.charged(server) is None, "no allocation")
        self.assertEqual([], self.swept())
        self.assertEqual(
            404,
            self.ask("GET", f"/servers/{server}", who=base.OPERATOR).status,
        )
