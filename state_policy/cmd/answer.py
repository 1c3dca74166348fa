# SPDX-License-Identifier: Apache-2.0
"""A decision as tools show it: what a client gets, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state_policy.engine import sentence
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.facts import CALLER, Age, Facts, Part
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.reading import Circumstances

#: Stands for the id of the server, which only a request has.
SERVER = "<server>"

_OURS = frozenset({Verdict.DENY, Verdict.WAIT, Verdict.BRAKE})


def of(decision: Decision, facts: Facts) -> dict[str, Any]:
    """Return a decision as a mapping that JSON and tests can take.

    ``code`` is what the client gets: that of a refusal, or the compute API's
    own success code where the server is moved to quarantine; None where the
    request goes on and Nova answers.
    """
    code = decision.code
    if decision.verdict is Verdict.QUARANTINE:
        method = OPERATIONS[decision.operation].method
        code = 204 if method == "DELETE" else 202
    return {
        "verdict": str(decision.verdict),
        "code": code,
        "retry_after": decision.retry_after,
        "rule": decision.rule,
        "rules": list(decision.rules),
        "facts": {
            key: plain(value)
            for key, value in decision.facts.items()
            if key != CALLER
        },
        "message": message(decision, facts),
        "evidence": decision.evidence,
        "undecided": decision.undecided,
        "revision": decision.revision,
        "id": decision.id,
    }


def message(decision: Decision, facts: Facts) -> str | None:
    """Return the sentence that a client is told, or None."""
    if decision.verdict not in _OURS:
        return None
    return sentence.tell(decision, SERVER, _circumstances(facts), ())


def _circumstances(facts: Facts) -> Circumstances:
    """Return what facts tell of that which a driver would look up."""
    age = facts.get("server.state_age")
    return Circumstances(since=age.seconds if isinstance(age, Age) else None)


def plain(value: Any) -> Any:
    """Return a fact's value as a rule's author writes it."""
    if isinstance(value, Age):
        return ("" if value.exact else ">=") + f"{value.seconds:g}s"
    if isinstance(value, Part):
        return [*sorted(value.has), *(["..."] if value.others else [])]
    if isinstance(value, set | frozenset | tuple | list):
        return sorted(str(item) for item in value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return value


#: Nova's key of a fault, by HTTP status.
_FAULTS = {
    403: "forbidden",
    409: "conflictingRequest",
    429: "overLimit",
    503: "serviceUnavailable",
}
_NOTES = {
    Verdict.ALLOW: "the request goes on as it came: Nova's own answer",
    Verdict.ESCALATE: "the next rung is taken: Nova's own answer to it",
    Verdict.QUARANTINE: "the compute API's own success; the server is gone "
    "for its owner",
    Verdict.WAIT: "after the wait, if the refusal still holds; else the "
    "request goes on",
}


def http(decision: Decision, facts: Facts) -> dict[str, Any]:
    """Return the answer that a client would get.

    In a real answer the server's id stands for ``SERVER``, and what else the
    state allows is added.
    """
    code = of(decision, facts)["code"]
    told = message(decision, facts)
    headers = {}
    body = None
    if told is not None:
        if decision.retry_after is not None:
            headers["Retry-After"] = str(decision.retry_after)
        details = sentence.details(decision, _circumstances(facts), ())
        body = {
            _FAULTS[code]: {
                "code": code,
                "message": told,
                "state_policy": details,
            }
        }
    return {
        "status": code,
        "headers": headers,
        "body": body,
        "message": told,
        "note": _NOTES.get(decision.verdict),
    }
