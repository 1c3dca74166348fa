# SPDX-License-Identifier: Apache-2.0
"""Whose quota a server counts in, and what happens when there is no room."""

from __future__ import annotations

from typing import Any, ClassVar

from state_policy.quarantine import operator
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, OWNER, RequestCase
from tests.functional.quota import support
from tests.functional.quota.support import NOTHING, ONE

TWO = {name: 2 * count for name, count in ONE.items()}


class Story(support.Quotas, RequestCase):
    """What is the same in each of Nova's ways to count."""

    __test__ = False

    def kept(self) -> dict[str, int]:
        """Return what the quarantine project uses."""
        return self.used(who=base.INSPECTOR)

    def told(self) -> dict[str, int]:
        """Return what operators are told that the project uses."""
        found = self.mover.usages(KEEPER.project_id)
        self.assertEqual((), found.unseen)
        self.assertEqual(2, found.resources[0].limit)
        return {one.resource: one.used for one in found.resources}

    def test_charged_and_full(self) -> None:
        self.limit(OWNER.project_id, instances=1)
        self.limit(KEEPER.project_id, instances=2)
        first = self.boot()
        self.assertEqual((ONE, NOTHING), (self.used(), self.kept()))
        self.assertEqual(204, self.delete(first).status)
        charged = ONE if self.AT_ONCE else NOTHING
        self.assertEqual((NOTHING, charged), (self.used(), self.kept()))
        # whether there is room is asked of the mappings too
        self.assertEqual({**charged, "instances": 1}, self.told())
        # The owner's only place is free again, at once.
        second = self.boot()
        self.assertEqual(["settle"], self.swept())
        self.assertEqual((ONE, ONE), (self.used(), self.kept()))
        self.assertEqual(204, self.delete(second).status)
        self.assert_concealed(second)
        # Now it is full, although one of the two is only concealed.
        third = self.boot()
        self.assertEqual(204, self.delete(third).status)
        self._wait_until_deleted({"id": third})
        self.assertEqual([], self.records(third))
        self.assertEqual(["settle"], self.swept())
        self.assertEqual((NOTHING, TWO), (self.used(), self.kept()))
        self.assertEqual(TWO, self.told())
        operator.release_one(self.mover, self.policy, first)
        self.assertEqual((ONE, ONE), (self.used(), self.kept()))
        operator.purge_one(self.mover, self.policy, second)
        self.wait_for(lambda: surgery.row(second)["deleted"], "deleted")
        self.wait_for(lambda: self.kept() == NOTHING, "nothing is kept")
        # There is room again.
        self.assertEqual(204, self.delete(first).status)
        self.assert_concealed(first)
        self.assertEqual(NOTHING, self.used())


class Denying(support.Quotas, RequestCase):
    """A full project with ``on_full = deny``."""

    __test__ = False
    POLICY: ClassVar[dict[str, Any]] = {"on_full": "deny"}

    def test_refused(self) -> None:
        first, second = self.boot(), self.boot()
        self.limit(KEEPER.project_id, instances=10, cores=1)
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(["settle"], self.swept())
        answer = self.delete(second)
        self.assertEqual(409, answer.status)
        self.assertEqual("30", answer.header("Retry-After"))
        for secret in (KEEPER.project_id, "quota", "quarantine", "cores"):
            self.assertNotIn(secret, answer.message)
        self.assertEqual([], self.records(second))
        self.assertEqual("active", surgery.row(second)["vm_state"])
        self.assertIsNone(surgery.row(second)["task_state"])
        self.assertEqual([second], self.listed())
        self.limit(KEEPER.project_id, instances=10, cores=2)
        self.assertEqual(204, self.delete(second).status)
        self.assert_concealed(second)


class TestLegacy(support.Legacy, Story):
    __test__ = True


class TestFromPlacement(support.FromPlacement, Story):
    __test__ = True


class TestUnified(support.Unified, Story):
    __test__ = True


class TestLegacyDenying(support.Legacy, Denying):
    __test__ = True


class TestFromPlacementDenying(support.FromPlacement, Denying):
    __test__ = True


class TestUnifiedDenying(support.Unified, Denying):
    __test__ = True


class TestLimitOfTheUser(support.Legacy, RequestCase):
    """A limit of the quarantine user's own within the project."""

    POLICY: ClassVar[dict[str, Any]] = {"on_full": "deny"}

    def test_refused(self) -> None:
        first, second = self.boot(), self.boot()
        self.operator.update_quota(
            {"instances": 1},
            project_id=KEEPER.project_id,
            user_id=KEEPER.user_id,
        )
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(409, self.delete(second).status)
        self.assertEqual(["settle"], self.swept())
        self.assertEqual(409, self.delete(second).status)
        self.assertEqual([second], self.listed())
