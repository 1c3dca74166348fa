# SPDX-License-Identifier: Apache-2.0
"""What a person is told about a refusal, in one line that stands alone.

Said is only what the server's owner can read in Nova too: its state, its
task, since when and by which action, that its compute service does not
answer, why it is locked. Never a host, a hypervisor, an aggregate or an id
that is not the owner's; what blocks by these is "the policy of this cloud".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from state_policy.engine import phrases
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.facts import Age, Facts, Part
from state_policy.engine.ports.reading import Circumstances

#: Characters; command-line tools show a line, and Nova's own are short.
LIMIT = 299
_SHOWN_OPERATIONS = 5
_SHOWN_REASONS = 2
_SHOWN_WAYS = 2

#: Facts that may be told, with their values.
TELLABLE = frozenset(
    {
        "server.vm_state",
        "server.task_state",
        "server.power_state",
        "server.state_age",
        "server.age",
        "server.running",
        "server.running_age",
        "server.launched",
        "server.locked",
        "server.host_up",
        "server.cell_up",
    }
)

#: What Circumstances.since is the beginning of. A lock, or a compute service
#: that does not answer, began at another time; so did a power state that the
#: hypervisor has changed by itself.
_OF_THE_STATE = frozenset(
    {
        "server.vm_state",
        "server.task_state",
        "server.state_age",
    }
)

#: Fact of a blocking condition -> code of the refusal, the most telling first.
_CODES = {
    "server.cell_up": "cell_down",
    "server.host_up": "host_down",
    "server.locked": "locked",
    "server.launched": "never_launched",
    "server.migration": "moving",
    "server.task_state": "busy",
    "server.running": "busy",
    "server.running_age": "busy",
    "server.vm_state": "wrong_state",
    "server.power_state": "wrong_state",
    "server.state_age": "age",
    "server.age": "age",
}
#: Every code a refusal can have; they do not change their meaning.
CODES = (
    *dict.fromkeys(_CODES.values()),
    "policy",
    "too_many",
    "unreadable",
)


def code(decision: Decision) -> str:
    """Return the stable code of a refusal, one of CODES."""
    if decision.undecided:
        return "unreadable"
    if decision.verdict is Verdict.BRAKE:
        return "too_many"
    blocking = {blocker.fact for blocker in decision.blocking}
    return next(
        (c for fact, c in _CODES.items() if fact in blocking), "policy"
    )


def tell(
    decision: Decision,
    server_id: str,
    circumstances: Circumstances,
    possible: Sequence[str],
) -> str:
    """Return the sentence.

    :param server_id: as Nova writes it
    :param possible: names of the operations that would pass now, the most
        useful first; empty where it is not known
    """
    reasons = _reasons(decision, circumstances)
    return _fitting(
        f"{_head(decision, server_id, reasons)}.",
        ("",) if _OF_THE_STATE.isdisjoint(reasons) else since(circumstances),
        (_lifting(decision), ""),
        (_possible(possible), ""),
        (_retry(decision.retry_after), ""),
    )


def extend(
    message: str,
    circumstances: Circumstances,
    possible: Sequence[str],
    retry_after: int | None,
) -> str:
    """Return a refusal of the API's own with what we know beside it.

    The message stays as it is, at the beginning, and alone where nothing of
    ours fits behind it.
    """
    end = _end(message)
    added = _fitting(
        "",
        since(circumstances),
        (_possible(possible), ""),
        (_retry(retry_after), ""),
        limit=LIMIT - len(message) - len(end),
    )
    return f"{message}{end}{added}" if added else message


def _end(message: str) -> str:
    """Return what ends a sentence before the next one."""
    if not message or message[-1].isspace():
        return ""
    return " " if message[-1] in ".!?" else ". "


def since(circumstances: Circumstances) -> tuple[str, ...]:
    """Return since when it is so, in the words of choice first."""
    if circumstances.since is None:
        return ("",)
    start = f"In this state for {phrases.duration(circumstances.since)}"
    if circumstances.action is None:
        return (f"{start}.", "")
    action = f"{start}, by action '{circumstances.action}'"
    if circumstances.request_id is None:
        return (f"{action}.", f"{start}.", "")
    return (
        f"{action} ({circumstances.request_id}).",
        f"{action}.",
        f"{start}.",
        "",
    )


def _fitting(head: str, *wordings: tuple[str, ...], limit: int = LIMIT) -> str:
    """Return the longest text that fits, giving up the first parts first.

    :param limit: characters; where it is less than none, nothing fits
    """
    most = [len(wording) - 1 for wording in wordings]
    steps: Iterator[tuple[int, ...]] = iter(
        sorted(itertools.product(*(range(m + 1) for m in most)), key=_loss)
    )
    for step in steps:
        parts = [head, *(w[i] for w, i in zip(wordings, step, strict=True))]
        text = " ".join(part for part in parts if part)
        if len(text) <= limit:
            return text
    return head[:LIMIT]


def _loss(step: tuple[int, ...]) -> int:
    """Return how much is given up; later parts weigh more."""
    return sum(given << (3 * place) for place, given in enumerate(step))


def _reasons(
    decision: Decision, circumstances: Circumstances
) -> Mapping[str, str]:
    """Return the reasons that are told, by the facts that they are about."""
    if decision.undecided:
        return {}
    found = phrases.reasons(decision, circumstances)
    return dict(itertools.islice(found.items(), _SHOWN_REASONS))


def _head(
    decision: Decision, server_id: str, reasons: Mapping[str, str]
) -> str:
    word = phrases.word(decision.operation)
    if decision.verdict in (Verdict.QUARANTINE, Verdict.ESCALATE):
        return (
            f"'{word}' of instance {server_id} falls under the policy of "
            "this cloud"
        )
    start = f"Cannot '{word}' instance {server_id}"
    if decision.undecided:
        return f"{start} while its state cannot be read"
    if decision.verdict is Verdict.BRAKE:
        return f"{start} now: too many such requests"
    if not reasons:
        return f"{start}: {phrases.FORBIDDEN}"
    return f"{start} while {' and '.join(reasons.values())}"


def _lifting(decision: Decision) -> str:
    if decision.code == 403:
        return "Waiting does not help."
    told = [phrases.condition(lift, decision.facts) for lift in decision.lifts]
    found = [phrase for phrase in told if phrase is not None]
    if any(lift.together for lift in decision.lifts):
        # A part of what it takes is not enough, so it is told whole or not.
        words = found if len(found) == len(told) else []
        word = " and "
    else:
        words, word = found[:_SHOWN_WAYS], " or "
    return f"It may pass once {word.join(words)}." if words else ""


def _possible(possible: Sequence[str]) -> str:
    if not possible:
        return ""
    shown = [phrases.friendly(name) for name in possible[:_SHOWN_OPERATIONS]]
    return f"Possible now: {', '.join(shown)}."


def _retry(seconds: int | None) -> str:
    return "" if seconds is None else f"Retry in {seconds} seconds."


# -- details ------------------------------------------------------------------


def details(
    decision: Decision,
    circumstances: Circumstances,
    possible: Sequence[str],
) -> dict[str, Any]:
    """Return the refusal for programs: what ``state_policy`` holds."""
    found: dict[str, Any] = {
        "code": code(decision),
        "decision": decision.id,
        "rule": decision.rule,
        "facts": tellable(decision.facts),
        "lifts": _lifts(decision),
        "possible": list(possible),
        "retry_after": decision.retry_after,
    }
    return {**found, **course(circumstances)}


def _lifts(decision: Decision) -> list[dict[str, Any]]:
    """Return what lifts, as JSON has it; of several together all or none."""
    told = [lift for lift in decision.lifts if lift.fact in TELLABLE]
    if any(lift.together for lift in decision.lifts):
        told = told if len(told) == len(decision.lifts) else []
    return [
        {
            "fact": lift.fact.removeprefix("server."),
            "change": lift.change.value,
            "values": [_plain(value) for value in lift.values],
            "together": lift.together,
        }
        for lift in told
    ]


def tellable(facts: Facts) -> dict[str, Any]:
    """Return the facts that may be told, as JSON has them."""
    return {
        fact.removeprefix("server."): _plain(value)
        for fact, value in facts.items()
        if fact in TELLABLE
    }


def course(circumstances: Circumstances) -> dict[str, Any]:
    """Return since when it is so, as JSON has it; empty if not known."""
    if circumstances.since is None:
        return {}
    return {
        "since": round(circumstances.since),
        "action": circumstances.action,
        "request_id": circumstances.request_id,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Age):
        return round(value.seconds)
    if isinstance(value, Part):
        value = value.has
    if isinstance(value, frozenset):
        return sorted(value)
    return value
