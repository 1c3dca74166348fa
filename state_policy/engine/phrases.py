# SPDX-License-Identifier: Apache-2.0
"""The words for facts, operations and spans of time.

A fact without words is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from state_policy.engine.decision import Blocker, Decision, Lift
from state_policy.engine.facts import UNREAD, Age, Part
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.reading import Circumstances

#: The reason of which no more is told.
FORBIDDEN = "the policy of this cloud forbids it"

_REASON_LENGTH = 80
_SHOWN_VALUES = 3


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


def reasons(
    decision: Decision, circumstances: Circumstances
) -> Mapping[str, str]:
    """Return the facts that made a refusal, each with its words."""
    found: dict[str, str] = {}
    for blocker in decision.blocking:
        phrase = _phrase(blocker, decision.facts, circumstances)
        if phrase is not None:
            found.setdefault(blocker.fact, phrase)
    states = {f: p for f, p in found.items() if f not in _AGES}
    return states or found


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
    if isinstance(value, Part):
        value = value.has or ("an operation",)
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


def condition(lift: Lift, facts: Mapping[str, Any]) -> str | None:
    """Return what must come true for a lift, None where nothing tells it."""
    if lift.fact in ("server.vm_state", "server.power_state"):
        values = [str(value) for value in lift.values if value is not None]
        return _one_of(lift.fact, values)
    if lift.fact == "server.task_state":
        if None in lift.values:
            return "no task is running"
        return _one_of(lift.fact, [str(value) for value in lift.values])
    if None in lift.values and lift.fact in _ENDS:
        end = _ENDS[lift.fact]
        later = _later(lift, facts)
        return end if later is None else f"{end} or {later}"
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
    value = next((v for v in lift.values if isinstance(v, Age)), None)
    if not isinstance(seen, Age) or value is None:
        return None
    left = value.seconds - seen.seconds
    return f"{duration(left)} more have passed" if left > 0 else None


#: What must come true where it is enough that there is none of something.
_ENDS: Mapping[str, str] = {
    "server.running": "nothing runs on it",
    "server.running_age": "nothing runs on it",
    "server.migration": "it is not being moved",
}

_CONDITIONS: Mapping[tuple[str, tuple[Any, ...]], str] = {
    ("server.launched", (True,)): "it has been launched",
    ("server.locked", (False,)): "it is unlocked",
    ("server.locked", (True,)): "it is locked",
    ("server.host_up", (True,)): "its compute service answers",
    ("server.host_up", (True, None)): "its compute service answers",
    ("server.host_up", (None, True)): "its compute service answers",
    ("server.cell_up", (True,)): "its state can be read",
}
