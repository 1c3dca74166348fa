# SPDX-License-Identifier: Apache-2.0
"""One cell of the space as facts, and the facts of a path in words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.regions import NO
from state_policy.engine.analysis.space import (
    FLAGS,
    TASK_STATE,
    VM_STATE,
    Axis,
    Space,
)
from state_policy.engine.facts import CALLER
from state_policy.engine.states import GROUPS, VM_STATES

#: Names given to what a rule only compares with a value of the server's.
_SERVER_PROJECT, _SERVER_USER = "server-project", "server-user"
_WITHOUT = re.compile("without ").match
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
    elif kind in FLAGS:
        # As Nova has them: its own check of is_admin compares with no text.
        caller[kind] = value == "True"
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


def words(
    space: Space, regions: Mapping[int, Sequence[int]], caller: bool = True
) -> list[str]:
    """Return the facts of a path as a person reads them.

    :param regions: for some axes the regions that the path allows
    :param caller: whether to say something about the caller
    """
    found = []
    for index, allowed in sorted(regions.items()):
        axis = space.axes[index]
        if axis.fact == CALLER and not caller:
            continue
        found.append(_fact(axis, [axis.regions[i].label for i in allowed]))
    return found


def qualified(text: str, found: Sequence[str]) -> str:
    """Return states with facts behind them: ``active/* with tag:a``.

    :param found: as ``words`` gives them
    """
    absent = [w.removeprefix("without ") for w in found if _WITHOUT(w)]
    there = [word for word in found if not _WITHOUT(word)]
    if there:
        text += f" with {', '.join(there)}"
    if absent:
        text += " and" if there else ""
        text += f" without {' or '.join(absent)}"
    return text


def caller_words(space: Space, regions: Mapping[int, Sequence[int]]) -> str:
    """Return who a path is about: ``admin``, ``all but member``."""
    those: list[str] = []
    others: list[str] = []
    for index, allowed in sorted(regions.items()):
        axis = space.axes[index]
        if axis.fact == CALLER:
            text = _fact(axis, [axis.regions[i].label for i in allowed])
            text = text.replace("role:", "")
            (others if text.startswith("without ") else those).append(
                text.removeprefix("without ")
            )
    if others and not those:
        return f"all but {' or '.join(others)}"
    return ", ".join([" and ".join(those), *(f"not {o}" for o in others)])


def _fact(axis: Axis, labels: list[str]) -> str:
    name = axis.fact.removeprefix("server.")
    if axis.fact == CALLER:
        name = ""
    if axis.part and axis.regions[-1].value is True:
        sign = "without " if labels == [NO] else ""
        return f"{sign}{name}:{axis.part}".replace(" :", " ").lstrip(":")
    if axis.ages or any(text.startswith(("<", ">")) for text in labels):
        return f"{name} {merged(labels)}"
    return f"{axis.part or name} {' or '.join(labels)}"


def merged(labels: Sequence[str]) -> str:
    """Return neighbouring spans as one."""
    if len(labels) < 2 or "none" in labels:
        return " or ".join(labels)
    low = [t for t in labels[0].split(" and ") if t.startswith(">")]
    high = [t for t in labels[-1].split(" and ") if t.startswith("<")]
    return " and ".join([*low, *high]) or "any"


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


def task_names(tasks: int) -> list[str]:
    """Return the task_states of a set, ``none`` for no task."""
    return [
        task or "none"
        for column, task in enumerate(dd.TASKS)
        if tasks >> column & 1
    ]


def tasks_of(bits: int) -> list[str]:
    """Return the task_states that a set of states has, whatever vm_state."""
    tasks = 0
    while bits:
        tasks |= bits & dd.ROW
        bits >>= dd.WIDTH
    return task_names(tasks)


def tasks_in_words(tasks: int) -> str:
    """Return a set of task_states in few words, groups by their names."""
    return _few(task_names(tasks), task_names(dd.ROW))


def _few(names: Sequence[str], every: Sequence[str]) -> str:
    if len(names) == len(every):
        return "*"
    if len(names) > len(every) / 2:
        missing = [name for name in every if name not in names]
        return "*(but " + ",".join(_grouped(missing)) + ")"
    return ",".join(_grouped(names))


def _grouped(names: Sequence[str]) -> list[str]:
    """Return names with those of a predefined group put together."""
    left = list(names)
    found = []
    for group, (kind, members) in GROUPS.items():
        if kind == TASK_STATE and len(members) > 1 and {*members} <= {*left}:
            found.append(f"rule:{group}")
            left = [name for name in left if name not in members]
    return left + found
