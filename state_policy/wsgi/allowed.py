# SPDX-License-Identifier: Apache-2.0
"""``GET /servers/{id}/allowed-actions``: what can be done now, and why not.

A path that Nova does not route. Who may not see the server gets what Nova
has to say to such a path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine import possible, sentence
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Facts
from state_policy.engine.operations import OPERATIONS, Operation
from state_policy.engine.ports.reading import (
    Caller,
    Circumstances,
    Location,
    Reader,
)
from state_policy.engine.ruleset import RuleSet
from state_policy.wsgi.doors import Address

_SHAPE = (1, "allowed-actions")
_SHOW = OPERATIONS["show"].gate


def addressed(found: Address, method: str) -> bool:
    """Return whether a request asks what it may ask for."""
    return method == "GET" and found.shape == _SHAPE and not found.boot


class AllowedActions:
    """Answers what is possible.

    :param rules: returns the rule set in force
    """

    def __init__(self, reader: Reader, rules: Callable[[], RuleSet]) -> None:
        self._reader = reader
        self._rules = rules

    def answer(
        self, caller: Caller, location: Location
    ) -> WSGIApplication | None:
        """Return the answer; None to who may not see the server."""
        if not self._reader.may(caller, location, _SHOW):
            return None
        rules = self._rules()
        needs = frozenset().union(
            *(found.may.needs for found in rules.operations.values())
        )
        facts = self._reader.read(caller, location, needs | possible.FACTS)
        content = {
            "allowed_actions": [
                {"operation": operation.name, "allowed": why is None}
                | (why or {})
                for operation, why in self._judged(
                    rules, caller, location, facts
                )
            ]
        }
        return _json(content)

    def _judged(
        self, rules: RuleSet, caller: Caller, location: Location, facts: Facts
    ) -> Iterator[tuple[Operation, dict[str, Any] | None]]:
        """Yield each operation with why it is not allowed, None if it is."""
        native = self._reader.natively_allowed(facts)
        locked = facts.get("server.locked") is True and not caller.is_admin
        for operation in OPERATIONS.values():
            if "read" in operation.classes:
                continue
            if not self._reader.may(caller, location, operation.gate):
                yield operation, {"code": "rights"}
                continue
            decision = decide(
                rules, operation.name, facts, refuse_unknown=True
            )
            if decision.verdict in (Verdict.DENY, Verdict.WAIT):
                yield operation, _refusal(decision, location)
            elif locked and operation.name != "unlock":
                yield operation, {"code": "locked"}
            elif native is not None and operation.name not in native:
                yield operation, {"code": "state"}
            else:
                yield operation, None


def _refusal(decision: Decision, location: Location) -> dict[str, Any]:
    return {
        "code": sentence.code(decision),
        "message": sentence.tell(
            decision, location.server_id, Circumstances(), ()
        ),
        "retry_after": decision.retry_after,
    }


def _json(content: Any) -> WSGIApplication:
    body = json.dumps(content).encode()

    def answer(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        start_response(
            "200 OK",
            [
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
            ],
        )
        return [body]

    return answer
