# SPDX-License-Identifier: Apache-2.0
"""``GET /servers/{id}/allowed-actions``: what can be done now, and why not.

A path that Nova does not route. Who may not see the server gets what Nova
has to say to such a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine import phrases, possible, sentence
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Facts
from state_policy.engine.operations import OPERATIONS, Operation
from state_policy.engine.ports.answering import Answers
from state_policy.engine.ports.reading import (
    Caller,
    Circumstances,
    Location,
    Reader,
    UnreadError,
    may_any,
)
from state_policy.engine.possible import Obstacle
from state_policy.engine.ruleset import RuleSet
from state_policy.wsgi.doors import Address

_SHAPE = (1, "allowed-actions")
_SHOW = OPERATIONS["show"].gate

#: Where the code that is told is not the obstacle's own.
_CODES = {Obstacle.HOST_UP: "state", Obstacle.KEPT: "policy"}
_WHY = {
    Obstacle.CELL_DOWN: "its state cannot be read",
    Obstacle.LOCKED: "it is locked",
    Obstacle.HOST_DOWN: "its compute service does not answer",
    Obstacle.HOST_UP: "its compute service answers",
    Obstacle.DELETING: "it is being deleted",
}
#: What has something done in Nova's place.
_OURS = (Verdict.QUARANTINE, Verdict.ESCALATE)


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
        answers: Answers,
        rules: Callable[[], RuleSet],
        *,
        retry_after: int = 30,
        refuse_unknown: bool = False,
    ) -> None:
        self._reader = reader
        self._answers = answers
        self._rules = rules
        self._retry_after = retry_after
        self._refuse_unknown = refuse_unknown

    def answer(
        self, caller: Caller, location: Location
    ) -> WSGIApplication | None:
        """Return the answer; None to who may not see the server.

        :raises UnreadError: where it cannot be told whether he may
        """
        found = self.listing(caller, location)
        return None if found is None else self._told(found)

    def _told(self, listing: list[dict[str, Any]]) -> WSGIApplication:
        def answer(
            environ: WSGIEnvironment, start_response: StartResponse
        ) -> Iterable[bytes]:
            content = {"allowed_actions": listing}
            return self._answers.told(environ, content)(
                environ, start_response
            )

        return answer

    def listing(
        self, caller: Caller, location: Location
    ) -> list[dict[str, Any]] | None:
        """Return each operation with whether it is allowed, or why not.

        :returns: None to who may not see the server
        :raises UnreadError: where it cannot be told whether he may
        """
        shown = self._reader.may(caller, location, _SHOW)
        if shown is None:
            raise UnreadError("the right to see a server could not be read")
        if not shown:
            return None
        rules = self._rules()
        needs = frozenset().union(
            *(found.may.needs for found in rules.operations.values())
        )
        facts = self._reader.read(
            caller, location, needs | possible.needs_beside(rules)
        )
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
        may = may_any(self._reader, caller, location, operation.gates)
        if may is None and facts.get("server.cell_up") is not False:
            return self._unread()
        if may is False:
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
        found = possible.obstacle(
            operation.name,
            facts,
            native,
            caller.is_admin,
            ours=decision.verdict in _OURS,
        )
        if found is not None and found is not Obstacle.UNREAD:
            return self._hindered(operation, location, facts, found)
        if decision.undecided or found is not None:
            # It goes to the cloud as it comes, whose answer nobody knows.
            return {"allowed": True, "undecided": True}
        return {"allowed": True}

    def _hindered(
        self,
        operation: Operation,
        location: Location,
        facts: Facts,
        obstacle: Obstacle,
    ) -> dict[str, Any]:
        """Return what Nova would not do, and when to ask again."""
        passing = obstacle in possible.PASSING or (
            obstacle is Obstacle.STATE
            and possible.passes(
                operation.name, facts, self._reader.natively_allowed
            )
        )
        answer = _no(
            _CODES.get(obstacle, obstacle.value),
            f"Cannot '{phrases.word(operation.name)}' instance "
            f"{location.server_id}{_why(obstacle, facts)}.",
        )
        return answer | ({"retry_after": self._retry_after} if passing else {})

    def _unread(self) -> dict[str, Any]:
        """Return what is said where the right to it could not be read."""
        if self._refuse_unknown:
            return _no("unreadable", "Your right to it cannot be read now.")
        return {"allowed": True, "undecided": True}


def _why(obstacle: Obstacle, facts: Facts) -> str:
    if obstacle is Obstacle.KEPT:
        return f": {phrases.FORBIDDEN}"
    found = _state(facts) if obstacle is Obstacle.STATE else _WHY[obstacle]
    return f" while {found}"


def _state(facts: Facts) -> str:
    """Return a server's state as Nova's own refusals name it."""
    state = f"it is in vm_state {facts.get('server.vm_state')}"
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
