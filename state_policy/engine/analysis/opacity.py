# SPDX-License-Identifier: Apache-2.0
"""Refusals that a user cannot foresee from the status he sees."""

from __future__ import annotations

from collections.abc import Iterator

from state_policy.engine.analysis import cells
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.context import Context, listed
from state_policy.engine.analysis.finding import Finding
from state_policy.engine.analysis.status import statuses
from state_policy.engine.decision import Verdict

#: Refused and allowed states of a status, each as one set.
Split = tuple[int, int]


def opaque(context: Context) -> Iterator[Finding]:
    """Find statuses in which an operation is both allowed and refused.

    One finding for each rule of a file; it names the task_states.
    """
    found: dict[str, dict[str, Split]] = {}
    names: dict[str, list[str]] = {}
    known: dict[tuple[dd.Diagram, dd.Diagram], dict[str, Split]] = {}
    for name, outcomes in context.analysis.outcomes.items():
        rule = context.stated(outcomes.rules.may)
        if rule is None:
            continue
        denied = outcomes.where(Verdict.DENY)
        key = outcomes.refused, denied
        if key not in known:
            known[key] = mixed(*key)
        if known[key]:
            names.setdefault(rule, []).append(name)
            found.setdefault(rule, {}).update(known[key])
    for rule, by_status in found.items():
        yield context.finding("SP005", rule, _message(names[rule], by_status))


def mixed(refused: dd.Diagram, denied: dd.Diagram) -> dict[str, Split]:
    """Return the statuses in which some states are denied and others pass.

    Everything but the state is the same in both.
    """
    found: dict[str, Split] = {}
    for bad, closed in dd.leaves(denied, refused):
        for status, mask in statuses().items():
            wrong, right = bad & mask, mask & ~closed
            if wrong and right:
                seen = found.get(status, (0, 0))
                found[status] = seen[0] | wrong, seen[1] | right
    return found


def _message(names: list[str], by_status: dict[str, Split]) -> str:
    groups: dict[str, list[str]] = {}
    for status, (bad, good) in by_status.items():
        groups.setdefault(_tasks(bad, good), []).append(status)
    parts = [f"{listed(seen)} {tasks}" for tasks, seen in groups.items()]
    return (
        f"refuses {listed(names)} in part of the states that users see as "
        + "; ".join(parts[:3])
        + ("; ..." if len(parts) > 3 else "")
    )


def _tasks(bad: int, good: int) -> str:
    """Say which states are refused, the shorter way."""
    refused, passed = cells.tasks_of(bad), cells.tasks_of(good)
    if refused == passed:
        seen = dict.fromkeys(vm_state for vm_state, _ in dd.pairs(bad))
        return f"(vm_state {listed(list(seen))})"
    if len(passed) < len(refused):
        return f"(all but task_state {listed(passed)})"
    return f"(task_state {listed(refused)})"
