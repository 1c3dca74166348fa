# SPDX-License-Identifier: Apache-2.0
"""What the tests of the quarantine share: the move on real Nova."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar

from nova import context, objects

from state_policy.conf.settings import QuarantineSettings
from state_policy.engine.ports.moving import Owner
from state_policy.quarantine import record as records
from state_policy.quarantine.conceal import Answer, Wish, conceal
from state_policy.quarantine.sweep import Done, Report, Sweep
from tests.functional import base
from tests.functional.harness import surgery

OWNED_PORT = "ce531f90-3d91-4b79-8c1d-4d2f1c7a4b3e"

OWNER = Owner(base.OWNER_PROJECT, base.OWNER.user_id)
KEEPER = Owner(base.QUARANTINE_PROJECT, "keeper")


class MoveCase(base.NovaTestCase):
    """Moves servers without the filter, step by step.

    :cvar POLICY: settings of the quarantine that differ
    """

    FILTERED = False
    POLICY: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        """Make the mover that the filter would have."""
        super().setUp()
        from state_policy.drivers.nova.moving import Mover

        self.mover = Mover()
        self.policy = QuarantineSettings(
            enabled=True,
            projects=(KEEPER.project_id,),
            user=KEEPER.user_id,
            settle_after=0,
        )
        self.policy = replace(self.policy, **self.POLICY)

    def wish(self, **more: Any) -> Wish:
        """Return what the filter would ask for the owner's DELETE."""
        values: dict[str, Any] = {
            "operation": "delete",
            "credentials": {
                "project_id": OWNER.project_id,
                "user_id": OWNER.user_id,
                "roles": ["member", "reader"],
                "is_admin": False,
            },
            "request_id": "req-of-the-owner",
        }
        return Wish(**{**values, **more})

    def conceal(self, server_id: str, **more: Any) -> Answer:
        """Conceal a server as the filter does."""
        return conceal(self.mover, self.policy, server_id, self.wish(**more))

    def sweep(self, **more: Any) -> Report:
        """Run a sweep."""
        return Sweep(self.mover, self.policy, **more).run()

    def swept(self, **more: Any) -> list[str]:
        """Run a sweep in which nothing fails; return its steps."""
        report = self.sweep(**more)
        self.assertEqual([], [d for d in report.done if d.error])
        self.assertEqual((), report.unseen)
        return [done.step for done in report.done]

    def errors(self, report: Report) -> list[Done]:
        """Return what failed in a sweep."""
        return [done for done in report.done if done.error]

    def records(self, server_id: str) -> list[records.Record]:
        """Return the records of a server, the oldest first."""
        return [
            records.load(event["traceback"])
            for event in surgery.events(server_id)
            if event["event"] == "state_policy_record"
        ]

    def mapped(self, server_id: str) -> str:
        """Return the project of a server's mapping."""
        found = objects.InstanceMapping.get_by_instance_uuid(
            context.get_admin_context(), server_id
        )
        return str(found.project_id)

    def spec_project(self, server_id: str) -> str:
        """Return the project of a server's request spec."""
        found = objects.RequestSpec.get_by_instance_uuid(
            context.get_admin_context(), server_id
        )
        return str(found.project_id)

    def allocations(self, server_id: str) -> dict[str, Any]:
        """Return what placement has for a server."""
        found = self.placement.get(
            f"/allocations/{server_id}", version="1.28"
        ).body
        return dict(found)

    def charged(self, server_id: str) -> str | None:
        """Return the project that placement charges for a server."""
        found = self.allocations(server_id)
        return found.get("project_id") if found["allocations"] else None

    def guests(self) -> list[str]:
        """Return the ids of the guests that the hypervisors run."""
        return [
            uuid
            for compute in self.computes.values()
            for uuid in compute.manager.driver.list_instance_uuids()
        ]

    def consumer(self, server_id: str) -> Owner | None:
        """Return whom placement charges for a server; None: nobody."""
        found = self.allocations(server_id)
        if not found["allocations"]:
            return None
        return Owner(found["project_id"], found["user_id"])

    def seen_by(self, who: base.Person, server_id: str) -> int:
        """Return the status with which a caller's GET is answered."""
        return self.ask("GET", f"/servers/{server_id}", who=who).status

    def assert_counted(self, *whose: base.Person) -> None:
        """Projects are charged for what their lists show, no more.

        :param whose: the owner's and the quarantine's by default
        """
        for who in whose or (base.OWNER, base.INSPECTOR):
            answer = self.ask("GET", "/servers/detail", who=who)
            flavors = [one["flavor"] for one in answer.json["servers"]]
            expected = {
                "instances": len(flavors),
                "cores": sum(flavor["vcpus"] for flavor in flavors),
                "ram": sum(flavor["ram"] for flavor in flavors),
            }
            self.assertEqual(expected, self.used(who), who.user_id)

    def assert_concealed(self, server_id: str) -> None:
        """Every store says that the server is concealed."""
        row = surgery.row(server_id)
        self.assertTrue(row["hidden"])
        self.assertTrue(row["locked"])
        self.assertEqual(OWNER.project_id, row["project_id"])
        self.assertEqual(KEEPER.project_id, self.mapped(server_id))
        self.assertEqual(KEEPER.project_id, self.spec_project(server_id))
        self.assertNotIn(server_id, self.listed())
        if self.FILTERED:
            self.assertEqual(404, self.seen_by(base.OWNER, server_id))
        # whether the quarantine is charged yet is for how Nova counts
        self.assert_counted(base.OWNER)

    def assert_settled(self, server_id: str, holds: bool = True) -> None:
        """Every store, and everybody, says that it is in quarantine.

        :param holds: whether it holds resources in placement
        """
        row = surgery.row(server_id)
        self.assertTrue(row["locked"])
        self._assert_is(server_id, KEEPER, holds)
        self._assert_seen(server_id, base.INSPECTOR, base.OWNER)

    def assert_owners(self, server_id: str, holds: bool = True) -> None:
        """Every store, and everybody, says that the server is its owner's.

        :param holds: whether it holds resources in placement
        """
        self._assert_is(server_id, OWNER, holds)
        self._assert_seen(server_id, base.OWNER, base.INSPECTOR)

    def assert_gone(self, server_id: str) -> None:
        """Nothing of a server is left, and nobody pays for it."""
        self.wait_for(lambda: surgery.row(server_id)["deleted"], "deleted")
        self.wait_for(lambda: server_id not in self.guests(), "no guest")
        self.assertIsNone(self.consumer(server_id))
        for who in (base.OWNER, base.INSPECTOR, base.OPERATOR):
            self.assertEqual(404, self.seen_by(who, server_id), who.user_id)
        self.assertNotIn(server_id, self._all())
        self.assert_counted()

    def _assert_is(self, server_id: str, owner: Owner, holds: bool) -> None:
        row = surgery.row(server_id)
        self.assertFalse(row["hidden"])
        self.assertEqual(owner.project_id, row["project_id"])
        self.assertEqual(owner.user_id, row["user_id"])
        self.assertEqual(owner.project_id, self.mapped(server_id))
        self.assertEqual(owner.project_id, self.spec_project(server_id))
        self.assertEqual(owner if holds else None, self.consumer(server_id))

    def _assert_seen(
        self, server_id: str, by: base.Person, not_by: base.Person
    ) -> None:
        self.assertEqual(200, self.seen_by(by, server_id))
        self.assertIn(server_id, self.listed(by))
        self.assertEqual(404, self.seen_by(not_by, server_id))
        self.assertNotIn(server_id, self.listed(not_by))
        shown = self.ask("GET", f"/servers/{server_id}", who=base.OPERATOR)
        self.assertEqual(by.project_id, shown.json["server"]["tenant_id"])
        self.assertEqual(
            surgery.row(server_id)["user_id"], shown.json["server"]["user_id"]
        )
        self.assertEqual(1, self._all().count(server_id))
        self.assert_counted()

    def _all(self) -> list[str]:
        """Return what an administrator's list of every project shows."""
        return self.listed(base.OPERATOR, "?all_tenants=1")


def text_of(found: Any) -> str:
    """Return anything as text, to look for secrets in it."""
    return json.dumps(found, default=str)


class RequestCase(MoveCase):
    """Moves servers through the filter, as their owners do."""

    FILTERED = True
    RULES = '"server:delete:quarantine": "@"\n'
    QUARANTINE: ClassVar[dict[str, Any]] = {
        "enabled": True,
        "projects": [KEEPER.project_id],
        "user": KEEPER.user_id,
        "settle_after": 0,
    }

    def _set_options(self) -> None:
        """Make the options of the filter those of the test's own sweeps."""
        self.QUARANTINE = {**RequestCase.QUARANTINE, **self.POLICY}
        super()._set_options()

    def sweep(self, **more: Any) -> Report:
        """Run a sweep with the filter's rules."""
        from state_policy import rules
        from state_policy.drivers.nova import Driver

        more.setdefault("rules", rules.load([self.policy_file]))
        more.setdefault("reader", Driver())
        return super().sweep(**more)
