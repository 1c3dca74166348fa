# SPDX-License-Identifier: Apache-2.0
"""The nearest states in which a decision would differ.

One fact is changed at a time; where none alone makes a difference, two are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.outcome import Label
from state_policy.engine.analysis.space import (
    TASK_STATE,
    VM_STATE,
    Axis,
    Space,
)
from state_policy.engine.decision import Decision
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import CALLER, UNREAD, Facts
from state_policy.engine.ruleset import RuleSet
from state_policy.engine.states import VM_STATES

#: So many pairs of changes are tried.
_PAIRS = 20000
#: So many pairs that differ are returned.
_SHOWN = 5


@dataclass(frozen=True)
class Step:
    """Another value of one fact.

    :ivar fact: the fact, or what is asked of it (``server.tag:keep``)
    :ivar label: the value as a rule's author would write it
    :ivar changed: the facts that change
    """

    fact: str
    label: str
    changed: Mapping[str, Any]


@dataclass(frozen=True)
class Neighbour:
    """Changes with the same new decision.

    :ivar facts: what changes: a fact and its other values; several facts
        change together
    :ivar label: what would be decided
    """

    facts: Mapping[str, tuple[str, ...]]
    label: Label


def label_of(decision: Decision) -> Label:
    """Return what can be told apart about a decision."""
    return Label(decision.verdict, decision.code, decision.evidence)


def neighbours(
    rules: RuleSet, operation: str, facts: Facts
) -> tuple[Neighbour, ...]:
    """Return what would change a decision, the nearest only."""
    seen = label_of(decide(rules, operation, facts))
    steps = list(_steps(rules, operation, facts))

    def differing(changes: Iterable[Step]) -> Label | None:
        changed = dict(facts)
        for step in changes:
            changed.update(step.changed)
        found = label_of(decide(rules, operation, changed))
        return found if found != seen else None

    grouped: dict[tuple[str, Label], list[str]] = {}
    for step in steps:
        found = differing([step])
        if found is not None:
            grouped.setdefault((step.fact, found), []).append(step.label)
    if grouped:
        return tuple(
            Neighbour({fact: tuple(labels)}, label)
            for (fact, label), labels in grouped.items()
        )
    return tuple(itertools.islice(_pairs(steps, differing), _SHOWN))


def _pairs(
    steps: list[Step], differing: Callable[[Iterable[Step]], Label | None]
) -> Iterator[Neighbour]:
    several = itertools.combinations(steps, 2)
    for one, other in itertools.islice(several, _PAIRS):
        if one.fact != other.fact:
            label = differing([one, other])
            if label is not None:
                yield Neighbour(
                    {one.fact: (one.label,), other.fact: (other.label,)}, label
                )


def _steps(rules: RuleSet, operation: str, facts: Facts) -> Iterator[Step]:
    """Yield every other value of every fact that the decision asks."""
    asked = rules.operations[operation].all
    space = Space(RuleSet({r.name: r.expression for r in asked}, ""))
    named = {literal.fact for rule in asked for literal in rule.literals}
    for fact, values in ((TASK_STATE, dd.TASKS), (VM_STATE, VM_STATES)):
        if fact in named:
            for value in values:
                if facts.get(fact, UNREAD) != value:
                    yield Step(fact, value or "none", {fact: value})
    for axis in space.axes:
        for region in axis.regions:
            changed = _changed(axis, region.value, facts)
            if changed is not None:
                yield Step(str(axis), region.label, changed)


def _changed(axis: Axis, value: Any, facts: Facts) -> dict[str, Any] | None:
    """Return the facts with an axis in another region, or None."""
    seen = facts.get(axis.fact, UNREAD)
    if axis.fact == CALLER:
        return _other_caller(axis.part, value, seen)
    if axis.part:
        members = frozenset(seen) if isinstance(seen, frozenset) else set()
        if bool(value) == (axis.part in members):
            return None
        return {
            axis.fact: frozenset(
                {*members, axis.part} if value else {*members} - {axis.part}
            )
        }
    return None if value == seen else {axis.fact: value}


def _other_caller(part: str, value: Any, seen: Any) -> dict[str, Any] | None:
    """Return the caller with or without a role; other keys stay."""
    kind, _, role = part.partition(":")
    if kind != "role" or not isinstance(seen, Mapping):
        return None
    roles = [str(found) for found in seen.get("roles") or ()]
    if bool(value) == (role in (found.lower() for found in roles)):
        return None
    changed = (
        [*roles, role]
        if value
        else [found for found in roles if found.lower() != role]
    )
    return {CALLER: {**seen, "roles": changed}}
