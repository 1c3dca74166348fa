# SPDX-License-Identifier: Apache-2.0
"""One cell of the space as facts, and the facts of a path in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.regions import NO
from state_policy.engine.analysis.space import TASK_STATE, VM_STATE, Space
from state_policy.engine.facts import CALLER
from state_policy.engine.states import VM_STATES

#: Names given to what a rule only compares with a value of the server's.
_SERVER_PROJECT, _SERVER_USER = "server-project", "server-user"
_TARGET = re.compile(r"%\((?:target\.)?(\w+)\)s")


def facts_of(
    space: Space,
    regions: Mapping[int, int],
    state: tuple[str, str | None],
) -> dict[str, Any]:
    """Return facts that lie in a cell, for the engine to decide on.

    :param regions: index of the region for some axes; the others get their
        first region
    :param state: the vm_state and the task_state
    """
    facts: dict[str, Any] = {VM_STATE: state[0], TASK_STATE: state[1]}
    caller: dict[str, Any] = {
        "roles": [],
        "target": {"project_id": _SERVER_PROJECT, "user_id": _SERVER_USER},
    }
    for index, axis in enumerate(space.axes):
        region = axis.regions[regions.get(index, 0)]
        if axis.fact == CALLER:
            _credential(caller, axis.part, region.value)
        elif axis.part:
            members = facts.setdefault(axis.fact, frozenset())
            if members is not None and region.value:
                facts[axis.fact] = members | {axis.part}
        else:
            facts[axis.fact] = region.value
    facts[CALLER] = caller
    return facts


def _credential(caller: dict[str, Any], part: str, value: Any) -> None:
    """Put into credentials what an axis says about them."""
    kind, _, match = part.partition(":")
    if kind in ("role", "service_roles"):
        key = "roles" if kind == "role" else kind
        found = caller.setdefault(key, [])
        if value:
            found.append(match)
    elif not match:
        if value is not None:
            caller[kind] = value
        else:
            caller.setdefault(kind, "other")
    elif value:
        # It equals what the server has: the server has it if the caller's
        # is settled already.
        named = _TARGET.search(match)
        own = named[1] if named else kind
        if caller.get(kind, "other") == "other":
            caller[kind] = caller["target"][own]
        caller["target"][own] = caller[kind]
    else:
        caller.setdefault(kind, "other")


def words(space: Space, regions: Mapping[int, Sequence[int]]) -> list[str]:
    """Return the facts of a path as a person reads them.

    :param regions: for some axes the regions that the path allows
    """
    found = []
    for index, allowed in sorted(regions.items()):
        axis = space.axes[index]
        labels = [axis.regions[i].label for i in allowed]
        if axis.part and axis.regions[-1].value is True:
            sign = "without " if labels == [NO] else ""
            found.append(f"{sign}{_name(axis.fact)}:{axis.part}".lstrip(":"))
        else:
            name = axis.part or _name(axis.fact)
            found.append(_phrase(name, labels, axis.ages))
    return found


def _name(fact: str) -> str:
    """Return a fact's name without what every one has."""
    return "" if fact == CALLER else fact.removeprefix("server.")


def _phrase(name: str, labels: Iterable[str], ages: bool) -> str:
    texts = [text for text in labels]
    if ages or any(text.startswith(("<", ">")) for text in texts):
        return " or ".join(f"{name} {_merged(texts)}".split(" or "))
    return f"{name} {' or '.join(texts)}"


def _merged(labels: Sequence[str]) -> str:
    """Return neighbouring spans as one."""
    if len(labels) < 2 or "none" in labels:
        return " or ".join(labels)
    low = [t for t in labels[0].split(" and ") if t.startswith(">")]
    high = [t for t in labels[-1].split(" and ") if t.startswith("<")]
    return " and ".join([*low, *high]) or "of any length"


def states(bits: int) -> str:
    """Return a set of states in few words: ``building/spawning``.

    ``*`` stands for any; states with the same tasks are put together, and
    more than half of all is said as an exception.
    """
    by_tasks: dict[int, list[str]] = {}
    for row, vm_state in enumerate(VM_STATES):
        tasks = bits >> (row * dd.WIDTH) & dd.ROW
        if tasks:
            by_tasks.setdefault(tasks, []).append(vm_state)
    texts = []
    for tasks, vm_states in by_tasks.items():
        names = _few(vm_states, VM_STATES)
        texts.append(f"{names}/{tasks_in_words(tasks)}")
    return "; ".join(texts)


def tasks_in_words(tasks: int) -> str:
    """Return a set of task_states in few words."""
    names = [
        task or "none" for i, task in enumerate(dd.TASKS) if tasks >> i & 1
    ]
    return _few(names, [task or "none" for task in dd.TASKS])


def _few(names: Sequence[str], every: Sequence[str]) -> str:
    if len(names) == len(every):
        return "*"
    if len(names) > len(every) / 2:
        missing = [name for name in every if name not in names]
        return "*(but " + ",".join(missing) + ")"
    return ",".join(names)

