# SPDX-License-Identifier: Apache-2.0
"""Requests through the filter under a deployer's own policy for Nova.

Custom roles, rules on the user who made a server and rules that are never
true: the filter refuses only where Nova would let the caller pass, and acts
only then. To everybody else Nova's own answer comes back byte for byte.
"""

from __future__ import annotations

from typing import Any

from state_policy.engine.operations import OPERATIONS
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.keystone import Person
from tests.functional.nova_reading.test_answers import plain
from tests.functional.nova_reading.test_never_more import SwitchedTestCase

#: Has a right only where a policy names the role.
HELPDESK = Person("helpdesk", base.OWNER_PROJECT, ("helpdesk",))

PEOPLE = {
    "owner": base.OWNER,
    "colleague": Person("colleague", base.OWNER_PROJECT),
    "reader": base.READER,
    "no role": base.NOBODY,
    "helpdesk": HELPDESK,
    "helpdesk elsewhere": Person(
        "helpdesk", base.FOREIGN_PROJECT, ("helpdesk",)
    ),
    # The same user, by a token for another project.
    "owner elsewhere": Person(base.OWNER.user_id, base.FOREIGN_PROJECT),
    "foreigner": base.FOREIGNER,
    "admin": base.OPERATOR,
}
_ALL_OF_THE_PROJECT = {
    "owner", "colleague", "reader", "no role", "helpdesk", "admin",
}  # fmt: skip

CUSTOM = {
    "os_compute_api:os-lock-server:lock": "role:helpdesk",
    "os_compute_api:servers:reboot": (
        "(role:helpdesk and project_id:%(project_id)s) or role:admin"
    ),
    "os_compute_api:servers:stop": "user_id:%(user_id)s",
    "os_compute_api:os-pause-server:pause": "!",
    "os_compute_api:servers:create_image": "@",
    # Nova names no user here, so that this is false for everybody.
    "os_compute_api:os-suspend-server:resume": "user_id:%(user_id)s",
}

#: Who may under it, on a server that is there. Nova finds no other project's
#: server for anybody but administrators, whatever the policy says.
MAY = {
    "lock": {"helpdesk"},
    "reboot_hard": {"helpdesk", "admin"},
    "stop": {"owner"},
    "pause": set(),
    "create_image": _ALL_OF_THE_PROJECT,
    "resume": set(),
    # Nova's own default.
    "unpause": {"owner", "colleague", "admin"},
}


#: The others differ from these in rows and locks, not in policy.
KINDS = ("active", "in cell0", "a build request", "absent")


class TestRefused(SwitchedTestCase):
    """The filter refuses everything that it may refuse."""

    RULES = '"class:any": "!"\n'

    def test_by_rules_only_who_may(self) -> None:
        self.policy.set_rules(CUSTOM, overwrite=False)
        self.switch.touch()
        servers = self.servers()
        self.watch()
        refused = {True: 0, False: 0}
        for name, person in PEOPLE.items():
            for kind in KINDS:
                server = servers[kind]
                for operation in MAY:
                    passes = self.compare_one(person, operation, server)
                    refused[passes] += 1
                    if kind in ("active", "in cell0"):
                        case = (name, kind, operation)
                        self.assertEqual(name in MAY[operation], passes, case)
        print(f"compared {refused}")
        self.assertGreater(min(refused.values()), 40)

    def compare_one(self, person: Person, name: str, server: str) -> bool:
        """Send a request with and without the filter.

        :returns: whether Nova lets the caller pass
        """
        operation = OPERATIONS[name]
        case = (person, name, server)
        self.switch.touch()
        passes = self.nova_lets_pass(person, operation, server)
        theirs: Any = self.answer
        self.assertIsNotNone(passes, (case, theirs))
        self.switch.unlink()
        ours = self.send(person, operation, server)
        if not passes:
            self.assertEqual(plain(theirs), plain(ours), case)
            return False
        self.assertEqual(403, ours.status, (case, ours))
        told = ours.json["forbidden"]["state_policy"]
        self.assertEqual("policy", told["code"], case)
        return True


class TestMoved(SwitchedTestCase):
    """The filter moves every server that somebody may delete."""

    RULES = '"server:delete:quarantine": "@"\n'
    QUARANTINE = base.QUARANTINED

    def refused(self, person: Person, server: str) -> None:
        """Have a delete refused by Nova, and nothing done."""
        self.switch.touch()
        theirs = self.delete(server, who=person)
        self.switch.unlink()
        ours = self.delete(server, who=person)
        self.assertEqual(plain(theirs), plain(ours), person)
        self.assertIn(ours.status, (403, 404), person)
        row = surgery.row(server)
        self.assertEqual((0, 0), (row["hidden"], row["deleted"]), person)

    def moved(self, person: Person, server: str) -> None:
        """Have a delete move the server."""
        self.assertEqual(204, self.delete(server, who=person).status, person)
        self.assertEqual(1, surgery.row(server)["hidden"], person)

    def judge(self, rule: str, may: set[str]) -> None:
        """Delete in everybody's name under a rule of Nova's policy."""
        gate = OPERATIONS["delete"].gate
        self.policy.set_rules({gate: rule}, overwrite=False)
        self.switch.touch()
        server = self.boot()
        self.switch.unlink()
        for name, person in PEOPLE.items():
            if name not in may:
                self.refused(person, server)
        for name in sorted(may):
            self.moved(PEOPLE[name], server)
            self.switch.touch()
            server = self.boot()
            self.switch.unlink()

    def test_by_who_has_the_role(self) -> None:
        self.judge("role:helpdesk", {"helpdesk"})

    def test_by_who_made_the_server(self) -> None:
        self.judge("user_id:%(user_id)s", {"owner"})

    def test_by_nobody(self) -> None:
        self.judge("!", set())
