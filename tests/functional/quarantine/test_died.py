# SPDX-License-Identifier: Apache-2.0
"""Steps of settle and purge that fail, and servers that go away meanwhile.

Release and conceal are in ``test_sweep``; every step of all four, with the
process killed, in ``test_killed``.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from state_policy.quarantine import operator
from state_policy.quarantine.record import Kind
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.steps import DeathError, StepCase


class TestSettle(StepCase):
    """Each step of the sweep that settles, and those that it makes up."""

    def test_each_step(self) -> None:
        self.leave_to_the_sweep()
        for step in ("charge", "release_ports", "settle_row"):
            server = self.boot(networks="auto")
            self.assertEqual(204, self.delete(server).status)
            self.assertTrue(surgery.row(server)["hidden"], step)
            mend = self.die_at(step)
            errors = self.errors(self.sweep())
            mend()
            self.assertEqual(1, len(errors), step)
            self.assertIn("DeathError", str(errors[0].error))
            self.swept()
            self.assert_settled(server)
            self.assertEqual({}, self.mover.bound_ports(server))
            self.assertEqual([], self.swept(), step)
            self.assertEqual([Kind.CONCEAL, Kind.SETTLE], self.kinds(server))


class TestSettleOvertaken(StepCase):
    """The owner's own delete ends between the sweep's look and a step."""

    RULES = '"server:delete:quarantine": "server.task_state:deleting"\n'

    def test_each_step(self) -> None:
        self.leave_to_the_sweep()
        for step in ("charge", "release_ports", "settle_row"):
            server = self.boot(networks="auto")
            hold = self.hold("destroy")
            self.assertEqual(204, self.delete(server).status)
            hold.wait_reached()
            self.wait_task(server, "deleting")
            self.assertEqual(204, self.delete(server).status)
            self.assert_concealed(server)
            self.before(step, functools.partial(self.let_end, server, hold))
            self.policy = replace(self.policy, deadline=0)
            self.assertNotIn("settle", self.swept(), step)
            self.assertEqual(["give back"], self.swept(), step)
            self.assert_gone(server)
            self.assertEqual([], self.swept())


class TestPurge(StepCase):
    """Each step of a purge."""

    def test_each_step(self) -> None:
        for step in ("release_ports", "write_record", "delete"):
            server = self.settled()
            mend = self.die_at(step)
            self.assertRaises(
                DeathError,
                operator.purge_one,
                self.mover,
                self.policy,
                server,
            )
            mend()
            began = step == "delete"
            self.assertEqual(began, Kind.PURGE in self.kinds(server), step)
            if not began:
                # what was not written down was not begun
                self.assertEqual([], self.swept())
                self.assert_settled(server)
                operator.purge_one(self.mover, self.policy, server)
            else:
                self.assertEqual(["purge"], self.swept())
            # compute deletes it now, and sweeps go on beside it
            for _ in range(5):
                self.assertEqual([], self.swept(), step)
            self.assert_gone(server)
            self.assertEqual([], self.swept())

    def test_with_its_state_reset(self) -> None:
        server = self.settled()
        surgery.set_row(server, task_state="deleting")
        mend = self.die_at("reset_state")
        self.assertRaises(
            DeathError, operator.purge_one, self.mover, self.policy, server
        )
        mend()
        operator.purge_one(self.mover, self.policy, server)
        self.assert_gone(server)
        self.assertEqual([], self.swept())

    def test_sweeps_beside_its_end(self) -> None:
        """The row says ``deleted`` and no task_state, and is still there."""
        server = self.settled()
        hold = self.hold_end()
        operator.purge_one(self.mover, self.policy, server)
        hold.wait_reached()
        row = surgery.row(server)
        self.assertEqual(
            ("deleted", None), (row["vm_state"], row["task_state"])
        )
        self.assertEqual(0, row["deleted"])
        for _ in range(2):
            self.assertEqual([], self.swept())
        self.assertEqual(1, self.kinds(server).count(Kind.PURGE))
        hold.release()
        self.assert_gone(server)

    def test_gone_before_a_step(self) -> None:
        """Another purge of it ends between two steps of this one."""
        for step in ("release_ports", "write_record", "delete"):
            server = self.settled()
            hold = self.hold_end()
            operator.purge_one(self.mover, self.policy, server)
            hold.wait_reached()
            self.before(step, functools.partial(self.let_end, server, hold))
            done = operator.purge_one(self.mover, self.policy, server)
            self.assertEqual(("purge", None), (done.step, done.error), step)
            self.assert_gone(server)
            self.assertEqual([], self.swept())

    def test_gone_before_its_state_is_reset(self) -> None:
        server = self.settled()
        hold = self.hold("destroy")
        operator.purge_one(self.mover, self.policy, server)
        hold.wait_reached()
        self.wait_task(server, "deleting")
        self.before(
            "reset_state", functools.partial(self.let_end, server, hold)
        )
        done = operator.purge_one(self.mover, self.policy, server)
        self.assertEqual(("purge", None), (done.step, done.error))
        self.assert_gone(server)


class TestRelease(StepCase):
    """A server that is being deleted is given back."""

    def test_of_what_is_going(self) -> None:
        server = self.settled()
        hold = self.hold("destroy")
        operator.purge_one(self.mover, self.policy, server)
        hold.wait_reached()
        self.wait_task(server, "deleting")
        done = operator.release_one(self.mover, self.policy, server)
        self.assertIn("its delete is under way", done.why)
        self.assert_owners(server)
        hold.release()
        self.assert_gone(server)
        # as Nova counts where placement tells what is used
        self.flags(count_usage_from_placement=True, group="quota")
        self.assertEqual(0, self.used(base.OWNER)["instances"])

    def test_of_what_is_gone(self) -> None:
        """Whoever asks hears it; the row stays where it was."""
        server = self.settled()
        hold = self.hold("destroy")
        operator.purge_one(self.mover, self.policy, server)
        hold.wait_reached()
        self.let_end(server, hold)
        refused = self.assertRaises(
            operator.RefusedError,
            operator.release_one,
            self.mover,
            self.policy,
            server,
        )
        self.assertIn("is deleted", str(refused))
