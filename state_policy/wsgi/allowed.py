# SPDX-License-Identifier: Apache-2.0
"""``GET /servers/{id}/allowed-actions``: what can be done now, and why not.

A path that Nova does not route. Who may not see the server gets what Nova
has to say to such a path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Set
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine import phrases, possible, sentence
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
    :param retry_after: seconds to say where nobody knows how long
    :param refuse_unknown: refuse where missing facts leave open whether a
        request may pass
    """

    def __init__(
        self,
        reader: Reader,
        rules: Callable[[], RuleSet],
        *,
        retry_after: int = 30,
        refuse_unknown: bool = False,
    ) -> None:
        self._reader = reader
        self._rules = rules
        self._retry_after = retry_after
        self._refuse_unknown = refuse_unknown

    def answer(
        self, caller: Caller, location: Location
    ) -> WSGIApplication | None:
        """Return the answer; None to who may not see the server."""
        found = self.listing(caller, location)
        return None if found is None else _json({"allowed_actions": found})

    def listing(
        self, caller: Caller, location: Location
    ) -> list[dict[str, Any]] | None:
        """Return each operation with whether it is allowed, or why not.

        :returns: None to who may not see the server
        """
        if not self._reader.may(caller, location, _SHOW):
            return None
        rules = self._rules()
        needs = frozenset().union(
            *(found.may.needs for found in rules.operations.values())
        )
        facts = self._reader.read(caller, location, needs | possible.FACTS)
        native = self._reader.natively_allowed(facts)
        if native is not None and location.build_request:
            native &= possible.BEFORE_A_CELL
        return [
            {"operation": operation.name}
            | self._judged(rules, caller, location, facts, native, operation)
            for operation in OPERATIONS.values()
            if "read" not in operation.classes
        ]

    def _judged(
        self,
        rules: RuleSet,
        caller: Caller,
        location: Location,
        facts: Facts,
        native: Set[str] | None,
        operation: Operation,
    ) -> dict[str, Any]:
        """Return whether one operation is allowed, and why not."""
        if not self._reader.may(caller, location, operation.gate):
            return _no("rights", "The cloud does not give you this right.")
        decision = decide(
            rules,
            operation.name,
            facts,
            retry_after=self._retry_after,
            refuse_unknown=self._refuse_unknown,
        )
        if decision.verdict in (Verdict.DENY, Verdict.WAIT):
            return _refusal(decision, location)
        start = (
            f"Cannot '{phrases.word(operation.name)}' instance "
            f"{location.server_id} while it is"
        )
        if possible.bound_by_lock(operation.name, facts, caller.is_admin):
            return _no("locked", f"{start} locked.")
        if native is not None and operation.name not in native:
            return _no("state", f"{start} {_state(facts)}.")
        found: dict[str, Any] = {"allowed": True}
        if decision.undecided:
            # It goes to the cloud as it comes, whose answer nobody knows.
            found["undecided"] = True
        return found


def _state(facts: Facts) -> str:
    """Return a server's state as Nova's own refusals name it."""
    state = f"in vm_state {facts.get('server.vm_state')}"
    task = facts.get("server.task_state")
    if task is not None:
        return f"{state} and task_state {task}"
    if facts.get("server.launched") is False:
        return f"{state} and was never launched"
    return state


def _no(code: str, message: str) -> dict[str, Any]:
    return {"allowed": False, "code": code, "message": message}


def _refusal(decision: Decision, location: Location) -> dict[str, Any]:
    message = sentence.tell(decision, location.server_id, Circumstances(), ())
    return _no(sentence.code(decision), message) | {
        "retry_after": decision.retry_after
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
