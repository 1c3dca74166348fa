# SPDX-License-Identifier: Apache-2.0
"""What a person is told about a refusal, in one line that stands alone.

Said is only what the server's owner can read in Nova too: its state, its
task, since when and by which action, that its compute service does not
answer, why it is locked. Never a host, a hypervisor, an aggregate or an id
that is not the owner's; what blocks by these is "the policy of this cloud".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from state_policy.engine.decision import Blocker, Decision, Lift, Verdict
from state_policy.engine.facts import UNREAD, Age
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.reading import Circumstances

#: Characters; command-line tools show a line, and Nova's own are short.
LIMIT = 299
_REASON_LENGTH = 80
_SHOWN_OPERATIONS = 5
_SHOWN_VALUES = 3

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
    head = f"{_head(decision, server_id, circumstances)}."
    return _fitting(
        head,
        after(decision, circumstances),
        (_lifting(decision), ""),
        (_possible(possible), ""),
        (_retry(decision), ""),
    )


def after(decision: Decision, circumstances: Circumstances) -> tuple[str, ...]:
    """Return since when it is so, in the words of choice first."""
    if decision.undecided or circumstances.since is None:
        return ("",)
    start = f"In this state for {duration(circumstances.since)}"
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


def _fitting(head: str, *wordings: tuple[str, ...]) -> str:
    """Return the longest text that fits, giving up the first parts first."""
    most = [len(wording) - 1 for wording in wordings]
    steps: Iterator[tuple[int, ...]] = iter(
        sorted(itertools.product(*(range(m + 1) for m in most)), key=_loss)
    )
    for step in steps:
        parts = [head, *(w[i] for w, i in zip(wordings, step, strict=True))]
        text = " ".join(part for part in parts if part)
        if len(text) <= LIMIT:
            return text
    return head[:LIMIT]


def _loss(step: tuple[int, ...]) -> int:
    """Return how much is given up; later parts weigh more."""
    return sum(given << (3 * place) for place, given in enumerate(step))


def word(operation: str) -> str:
    """Return an operation's name as Nova's own messages have it."""
    action = OPERATIONS[operation].action
    return action.removeprefix("os-") if action else operation


def friendly(operation: str) -> str:
    """Return an operation's name as a person says it."""
    return {
        "reboot_hard": "hard reboot",
        "reboot_soft": "soft reboot",
        "delete": "DELETE",
    }.get(operation, operation.replace("_", " "))


def duration(seconds: float) -> str:
    """Return a span of time in whole units."""
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{int(seconds // size)} {unit}"
    count = max(0, int(seconds))
    return "1 second" if count == 1 else f"{count} seconds"


# -- what blocks --------------------------------------------------------------


def _head(
    decision: Decision, server_id: str, circumstances: Circumstances
) -> str:
    if decision.verdict in (Verdict.QUARANTINE, Verdict.ESCALATE):
        return (
            f"'{word(decision.operation)}' of instance {server_id} falls "
            "under the policy of this cloud"
        )
    start = f"Cannot '{word(decision.operation)}' instance {server_id}"
    if decision.undecided:
        return f"{start} while its state cannot be read"
    if decision.verdict is Verdict.BRAKE:
        return f"{start} now: too many such requests"
    reasons = _reasons(decision, circumstances)
    if not reasons:
        return f"{start}: the policy of this cloud forbids it"
    return f"{start} while {' and '.join(reasons[:2])}"


def _reasons(
    decision: Decision, circumstances: Circumstances
) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for blocker in decision.blocking:
        phrase = _phrase(blocker, decision.facts, circumstances)
        if phrase is not None:
            found.setdefault(blocker.fact, phrase)
    states = {f: p for f, p in found.items() if f not in _AGES}
    return tuple((states or found).values())


_AGES = frozenset({"server.state_age", "server.age", "server.running_age"})


def _phrase(
    blocker: Blocker, facts: Mapping[str, Any], circumstances: Circumstances
) -> str | None:
    value = facts.get(blocker.fact, UNREAD)
    make = _PHRASES.get(blocker.fact)
    if value is UNREAD or make is None:
        return None
    if blocker.fact == "server.locked" and value:
        return _locked(circumstances)
    return make(value)


def _locked(circumstances: Circumstances) -> str:
    given = circumstances.locked_reason or ""
    printable = "".join(c if c.isprintable() else " " for c in given)
    reason = " ".join(printable.split())
    if not reason:
        return "it is locked"
    if len(reason) > _REASON_LENGTH:
        reason = reason[: _REASON_LENGTH - 3] + "..."
    return f"it is locked ({reason})"


def _running(value: Any) -> str:
    if not value:
        return "nothing runs on it"
    return f"{', '.join(sorted(value))} is still running"


def _old(where: str) -> Callable[[Any], str | None]:
    def phrase(value: Any) -> str | None:
        if not isinstance(value, Age):
            return None
        return f"it has been {where} for {duration(value.seconds)}"

    return phrase


_PHRASES: Mapping[str, Callable[[Any], str | None]] = {
    "server.vm_state": lambda value: f"it is in vm_state {value}",
    "server.task_state": lambda value: (
        f"it is in task_state {value}" if value else "no task is running"
    ),
    "server.power_state": lambda value: f"it is in power_state {value}",
    "server.running": _running,
    "server.locked": lambda value: "it is not locked",
    "server.launched": lambda value: (
        "it has been launched" if value else "it was never launched"
    ),
    "server.host_up": lambda value: {
        True: "its compute service answers",
        False: "its compute service does not answer",
    }.get(value, "it has no compute service yet"),
    "server.cell_up": lambda value: (
        "its state can be read" if value else "its state cannot be read"
    ),
    "server.migration": lambda value: (
        "it is being moved" if value else "it is not being moved"
    ),
    "server.state_age": _old("in its state"),
    "server.age": _old("there"),
    "server.running_age": _old("busy"),
}


# -- what next ----------------------------------------------------------------


def _lifting(decision: Decision) -> str:
    if decision.code == 403:
        return "Waiting does not help."
    found = [
        phrase
        for lift in decision.lifts
        if (phrase := _condition(lift, decision.facts)) is not None
    ]
    return f"It may pass once {' or '.join(found[:2])}." if found else ""


def _condition(lift: Lift, facts: Mapping[str, Any]) -> str | None:
    if lift.fact in ("server.vm_state", "server.power_state"):
        values = [str(value) for value in lift.values if value is not None]
        return _one_of(lift.fact, values)
    if lift.fact == "server.task_state":
        if None in lift.values:
            return "no task is running"
        return _one_of(lift.fact, [str(value) for value in lift.values])
    if lift.fact in _AGES:
        return _later(lift, facts)
    return _CONDITIONS.get((lift.fact, lift.values))


def _one_of(fact: str, values: Sequence[str]) -> str | None:
    if not values:
        return None
    shown = " or ".join(values[:_SHOWN_VALUES])
    return f"{fact.removeprefix('server.')} is {shown}"


def _later(lift: Lift, facts: Mapping[str, Any]) -> str | None:
    seen = facts.get(lift.fact)
    value = lift.values[0] if lift.values else None
    if not isinstance(seen, Age) or not isinstance(value, Age):
        return None
    left = value.seconds - seen.seconds
    return f"{duration(left)} more have passed" if left > 0 else None


_CONDITIONS: Mapping[tuple[str, tuple[Any, ...]], str] = {
    ("server.locked", (False,)): "it is unlocked",
    ("server.locked", (True,)): "it is locked",
    ("server.host_up", (True,)): "its compute service answers",
    ("server.host_up", (True, None)): "its compute service answers",
    ("server.host_up", (None, True)): "its compute service answers",
    ("server.cell_up", (True,)): "its state can be read",
}


def _possible(possible: Sequence[str]) -> str:
    if not possible:
        return ""
    shown = [friendly(name) for name in possible[:_SHOWN_OPERATIONS]]
    if len(possible) == 1:
        return f"Only {shown[0]} works now."
    return f"Possible now: {', '.join(shown)}."


def _retry(decision: Decision) -> str:
    if decision.retry_after is None:
        return ""
    return f"Retry in {decision.retry_after} seconds."


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
        "facts": {
            fact.removeprefix("server."): _plain(value)
            for fact, value in decision.facts.items()
            if fact in TELLABLE
        },
        "lifts": [
            {
                "fact": lift.fact.removeprefix("server."),
                "change": lift.change.value,
                "values": [_plain(value) for value in lift.values],
            }
            for lift in decision.lifts
            if lift.fact in TELLABLE
        ],
        "possible": list(possible),
        "retry_after": decision.retry_after,
    }
    if circumstances.since is not None:
        found["since"] = round(circumstances.since)
        found["action"] = circumstances.action
        found["request_id"] = circumstances.request_id
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Age):
        return round(value.seconds)
    if isinstance(value, frozenset):
        return sorted(value)
    return value
