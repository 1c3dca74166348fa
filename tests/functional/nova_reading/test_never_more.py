# SPDX-License-Identifier: Apache-2.0
"""With the filter and a rule that refuses all: nobody is told or given more.

Each request is sent twice, with the filter switched off by its file and with
the filter. What Nova refuses by itself must come back byte for byte.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from state_policy.engine.operations import OPERATIONS, Operation
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.keystone import Person
from tests.functional.harness.lines import listen
from tests.functional.nova_reading import requests
from tests.functional.nova_reading.test_answers import plain
from tests.functional.nova_reading.test_rights import (
    AKIN,
    PEOPLE,
    RightsTestCase,
)

#: One of each class and each way of asking.
ASKED = tuple(
    OPERATIONS[name]
    for name in (
        "delete",
        "reboot_soft",
        "stop",
        "unlock",
        "reset_state",
        "rebuild",
        "update",
        "attach_volume",
        "create_metadata",
        "create_image",
    )
)


class SwitchedTestCase(RightsTestCase):
    """A filter that a file switches off."""

    FILTERED = True

    def _set_options(self) -> None:
        self.switch = self.directory / "off"
        self.OPTIONS = {"disable_by_file_path": str(self.switch)}
        super()._set_options()

    def send(self, who: Person, operation: Operation, server: str) -> Any:
        return self.ask(
            operation.method,
            requests.path(operation, server),
            requests.body(operation),
            who=who,
            microversion=requests.microversion(operation),
        )


class TestNothingIsAllowed(SwitchedTestCase):
    RULES = '"class:any": "!"\n'

    @pytest.mark.stress
    def test_nobody_is_told_more(self) -> None:
        """Whole; make test has each two of the three (test_matrix)."""
        self.switch.touch()
        servers = self.servers()
        self.watch()
        refused = {True: 0, False: 0}
        for name, person in PEOPLE.items():
            if name in AKIN:
                continue
            for kind, server in servers.items():
                for operation in ASKED:
                    case = (name, kind, operation.name)
                    self.switch.touch()
                    passes = self.nova_lets_pass(person, operation, server)
                    assert passes is not None, (case, self.answer)
                    theirs = self.answer
                    self.switch.unlink()
                    ours = self.send(person, operation, server)
                    refused[passes] += 1
                    if passes:
                        assert ours.status == 403, (case, ours)
                        assert ours.json.keys() == {"forbidden"}
                        assert "compute" not in ours.message.lower()
                    else:
                        assert plain(ours) == plain(theirs), case
        print(f"compared {refused}")
        assert min(refused.values()) > 100

    def test_foreign_is_as_absent(self) -> None:
        self.switch.touch()
        servers = self.servers()
        self.switch.unlink()
        absent = servers.pop("absent")
        for operation in ASKED:
            expected = self.send(base.FOREIGNER, operation, absent)
            if operation.name == "stop":
                # Nova tells these apart itself, by another text.
                continue
            for kind, server in servers.items():
                found = self.send(base.FOREIGNER, operation, server)
                same = found.body.replace(server.encode(), absent.encode())
                if kind == "a build request":
                    # Nova shows these to everybody; the policy refuses.
                    assert found.status in (403, 404)
                    continue
                assert found.status == expected.status, (kind, operation)
                assert same == expected.body, (kind, operation)


class TestCost(SwitchedTestCase):
    RULES = """
"server:lock": "server.vm_state:active"
"server:create_metadata": "server.vm_state:active and not server.tag:frozen"
"server:update": "@"
"server:update_metadata": "role:member"
"""

    def added(self, server: str, name: str) -> dict[str, int]:
        """Return the SELECTs that the filter adds to a request Nova takes.

        Each can be sent again and again; the first one changes something.
        """
        assert self.send(base.OWNER, OPERATIONS[name], server).status < 300
        self.switch.touch()
        theirs = self.least(server, name)
        self.switch.unlink()
        ours = self.least(server, name)
        return {
            where: ours.get(where, 0) - theirs.get(where, 0)
            for where in ours.keys() | theirs.keys()
            if ours.get(where, 0) != theirs.get(where, 0)
        }

    def least(self, server: str, name: str) -> Counter[str]:
        """Return the SELECTs of a request without those of other threads.

        All threads are counted, since cells are read in Nova's pool; now and
        then a service says that it is alive.
        """
        found = []
        for _ in range(3):
            with self.statements(every_thread=True) as statements:
                answer = self.send(base.OWNER, OPERATIONS[name], server)
            assert answer.status < 300, answer
            found.append(Counter(statements.selects()))
        first, second, third = found
        return first & second & third

    def test_selects_of_an_allow(self) -> None:
        server = self.boot()
        for name in ("update", "update_metadata", "show", "list_metadata"):
            assert self.added(server, name) == {}, name
        assert self.added(server, "create_metadata") == {"api": 1, "cell1": 2}
        assert self.added(server, "lock") == {"api": 1, "cell1": 1}


class TestSecrets(SwitchedTestCase):
    """Marked secrets in every place that has one, through every operation."""

    RULES = '"class:any": "!"\n"class:read": "!"\n'
    SECRETS = ("pass-9f1c", "data-9f1c", "token-9f1c", "key-9f1c")

    def body(self, operation: Operation) -> Any:
        body = requests.body(operation)
        if operation.name == "rebuild":
            body["rebuild"] = {
                **body["rebuild"],
                "adminPass": self.SECRETS[0],
                "user_data": self.SECRETS[1],
                "key_name": self.SECRETS[3],
            }
        elif operation.name in ("change_password", "rescue", "evacuate"):
            body = {operation.action: {"adminPass": self.SECRETS[0]}}
        return body

    def test_nowhere(self) -> None:
        self.switch.touch()
        server = self.boot()
        self.switch.unlink()
        lines = listen(self)
        answers = []
        for operation in OPERATIONS.values():
            for who in (base.OWNER, base.OPERATOR, base.FOREIGNER):
                answers.append(
                    self.ask(
                        operation.method,
                        requests.path(operation, server),
                        self.body(operation),
                        who=who,
                        microversion=requests.microversion(operation),
                        headers={
                            "X-Auth-Token": self.SECRETS[2],
                            "X-Service-Token": self.SECRETS[2],
                        },
                    )
                )
        assert sum(a.status == 403 for a in answers) > len(OPERATIONS)
        assert len(lines) > len(OPERATIONS)
        for table in (surgery.actions, surgery.events):
            lines += [str(row) for row in table(server)]
        for secret in self.SECRETS:
            for line in lines:
                assert secret not in line, line
            for answer in answers:
                assert secret.encode() not in answer.body, answer
                assert secret not in str(answer.headers), answer
