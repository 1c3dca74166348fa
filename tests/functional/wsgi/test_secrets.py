# SPDX-License-Identifier: Apache-2.0
"""Requests that pass, are explained or end in quarantine leave no secret.

Each operation is sent with marked secrets in every place that takes one, to a
real Nova that carries it out. Looked through are all lines of ours at every
level, the record of the quarantine and the answers in which we have a say.
"""

from __future__ import annotations

import base64
from typing import Any

from state_policy.engine.operations import OPERATIONS, Operation
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.lines import listen
from tests.functional.nova_reading import requests

#: A password, a token, user data as the client and as Nova's row has it.
PASSWORD, TOKEN, DATA = "pass-7c3e", "token-7c3e", "data-7c3e"
SECRETS = (PASSWORD, TOKEN, DATA, base64.b64encode(DATA.encode()).decode())

#: These have a password in them.
_WITH_PASSWORD = frozenset(
    {"rebuild", "change_password", "rescue", "evacuate"}
)


class TestSecretsThatPass(base.NovaTestCase):
    """The rules look at everything, and let everything pass but a delete."""

    RULES = """
"class:any": "server.vm_state:active or not server.vm_state:active"
"class:read": "rule:class:any"
"server:delete:quarantine": "@"
"server:force_delete": "server.vm_state:building"
"""
    QUARANTINE = base.QUARANTINED

    def body(self, operation: Operation) -> Any:
        body = requests.body(operation)
        if operation.name in _WITH_PASSWORD:
            arguments = body[operation.action] or {}
            body = {operation.action: {**arguments, "adminPass": PASSWORD}}
        if operation.name == "rebuild":
            body["rebuild"]["user_data"] = SECRETS[3]
        return body

    def send(
        self, operation: Operation, server: str, who: base.Person
    ) -> base.Answer:
        return self.ask(
            operation.method,
            requests.path(operation, server),
            self.body(operation),
            who=who,
            microversion=requests.microversion(operation),
            headers={"X-Auth-Token": TOKEN, "X-Service-Token": TOKEN},
        )

    def test_nowhere(self) -> None:
        lines = listen(self)
        worked, doomed = self.boot(), self.boot()
        for server in (worked, doomed):
            surgery.set_row(server, user_data=SECRETS[3])
        answers = [
            # The operator comes first: some need an administrator.
            self.send(operation, worked, who)
            for operation in OPERATIONS.values()
            if operation.name != "delete"
            for who in (base.OPERATOR, base.OWNER)
        ]
        answers.append(self.ask("GET", f"/servers/{worked}/allowed-actions"))
        answers.append(self.send(OPERATIONS["delete"], doomed, base.OWNER))
        self.assertEqual(204, answers[-1].status, answers[-1])
        records = [
            event["traceback"]
            for event in surgery.events(doomed)
            if event["event"] == "state_policy_record"
        ]
        self.assertEqual(1, len(records))
        told = [a for a in answers if b'"state_policy"' in a.body]
        taken = [a for a in answers if a.status < 300]
        self.assertGreater(len(told), 20)
        self.assertGreater(len(taken), 30)
        self.assertGreater(len(lines), 2)
        written = [
            *lines,
            *records,
            *(str(row) for row in surgery.actions(doomed)),
            *(str(a.headers) + a.body.decode() for a in told),
        ]
        for secret in SECRETS:
            for text in written:
                self.assertNotIn(secret, text)
