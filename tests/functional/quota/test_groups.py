# SPDX-License-Identifier: Apache-2.0
"""Server groups: a place for the replacement, and the member's return."""

from __future__ import annotations

from typing import Any

from state_policy.quarantine import operator
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import RequestCase


class GroupCase(RequestCase):
    """Two hosts and a group."""

    HOSTS = (("one", "cell1"), ("two", "cell1"))

    def group(self, policy: str, **rules: int) -> str:
        """Return the id of a new group of the owner's."""
        body: dict[str, Any] = {"name": "group", "policy": policy}
        if rules:
            body["rules"] = rules
        found: str = self.owner.post_server_groups(body)["id"]
        return found

    def members(self, group: str) -> set[str]:
        """Return the members as the owner sees them."""
        return set(self.owner.get_server_group(group)["members"])

    def boot_in(self, group: str, expected: str = "ACTIVE") -> str:
        """Have a server created in a group."""
        body = {
            "server": self._build_server(networks="none"),
            "os:scheduler_hints": {"group": group},
        }
        server = self.owner.post_server(body)
        self._wait_for_state_change(server, expected)
        found: str = server["id"]
        return found

    def host(self, server_id: str) -> str:
        """Return the host of a server."""
        return str(surgery.row(server_id)["host"])

    def released(self, server_id: str) -> str:
        """Release a server; return what the operator is told."""
        planned = operator.release_one(
            self.mover, self.policy, server_id, dry_run=True
        )
        done = operator.release_one(self.mover, self.policy, server_id)
        self.assertEqual((planned.why, False), (done.why, planned.acted))
        self.assert_owners(server_id)
        return done.why


class TestAntiAffinity(GroupCase):
    """At most one member on each of two hosts."""

    def test_replacement_and_return(self) -> None:
        group = self.group("anti-affinity")
        first, second = self.boot_in(group), self.boot_in(group)
        self.assertNotEqual(self.host(first), self.host(second))
        self.assertEqual(204, self.delete(first).status)
        self.assert_concealed(first)
        self.assertEqual({second}, self.members(group))
        # Back while it is only concealed, and again once it is settled.
        self.assertEqual("it was asked for", self.released(first))
        self.assertEqual({first, second}, self.members(group))
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(["settle"], self.swept())
        third = self.boot_in(group)
        self.assertEqual(self.host(first), self.host(third))
        # Its place is taken: it is a member again, and that is said.
        why = self.released(first)
        self.assertEqual(
            "it was asked for, but its server group has others on its host: 1",
            why,
        )
        self.assertEqual({first, second, third}, self.members(group))
        # What that means: no place for one more, and nothing else.
        fourth = self.boot_in(group, "ERROR")
        fault = self.ask("GET", f"/servers/{fourth}").json["server"]["fault"]
        self.assertIn("No valid host", fault["message"])
        for action in ("pause", "unpause", {"reboot": {"type": "HARD"}}):
            self.assertEqual(202, self.act(first, action).status)
            self.wait_task(first, None)
        self.assertEqual("active", surgery.row(first)["vm_state"])
        # A migration mends it.
        self._start_compute("three", cell_name="cell1")
        answer = self.act(first, "migrate", who=base.OPERATOR)
        self.assertEqual(202, answer.status)
        self.wait_for(
            lambda: surgery.row(first)["vm_state"] == "resized", "resized"
        )
        self.assertEqual("three", self.host(first))

    def test_more_than_one_on_a_host(self) -> None:
        group = self.group("anti-affinity", max_server_per_host=2)
        servers = [self.boot_in(group) for _ in range(4)]
        first = servers[0]
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(["settle"], self.swept())
        self.assertEqual("it was asked for", self.released(first))
        self.assertEqual(set(servers), self.members(group))


class TestOtherPolicies(GroupCase):
    """Affinity, what need not hold, and a group that is gone."""

    def test_affinity(self) -> None:
        group = self.group("affinity")
        first = self.boot_in(group)
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(["settle"], self.swept())
        (service,) = self.operator.get_services(
            host=self.host(first), binary="nova-compute"
        )
        # nothing holds the group to the host of the one that left
        self.operator.put_service(service["id"], {"status": "disabled"})
        second = self.boot_in(group)
        self.assertNotEqual(self.host(first), self.host(second))
        self.assertEqual(
            "it was asked for, but its server group has others on other hosts",
            self.released(first),
        )
        self.assertEqual({first, second}, self.members(group))

    def test_soft_and_gone(self) -> None:
        group = self.group("soft-anti-affinity")
        servers = [self.boot_in(group) for _ in range(3)]
        for server in servers:
            self.assertEqual(204, self.delete(server).status)
        self.assertEqual(3 * ["settle"], self.swept())
        for server in servers[:2]:
            self.assertEqual("it was asked for", self.released(server))
        self.assertEqual(set(servers[:2]), self.members(group))
        answer = self.ask("DELETE", f"/os-server-groups/{group}")
        self.assertEqual(204, answer.status)
        self.assertEqual(
            "it was asked for, but its server group is gone",
            self.released(servers[2]),
        )
        self.assertIn(servers[2], self.listed(base.OWNER))
