# SPDX-License-Identifier: Apache-2.0
"""What would let a refused request pass, found by trying.

For each fact a rule looks at its other values are tried: those of passing
facts (they change by themselves) and of movable ones (the owner can change
them); fixed facts stay as seen. Which are which depends on the state, too
(``changes``). Ages only grow, except that a change of the state starts its
age anew.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from state_policy.engine.changes import effective_change
from state_policy.engine.decision import Lift
from state_policy.engine.facts import UNREAD, Age, Facts
from state_policy.engine.literal import Change
from state_policy.engine.ruleset import Rule

#: So many combinations are tried; beyond them "may lift" is assumed, as for a
#: fact that was not read.
LIMIT = 4096

#: Ages that start anew when one of these facts changes.
_RESTARTS: Mapping[str, frozenset[str]] = {
    "server.state_age": frozenset({"server.vm_state", "server.task_state"}),
    "server.running_age": frozenset({"server.running"}),
}


class Variables:
    """The facts of one rule that can change, and the values to try."""

    def __init__(self, rule: Rule, facts: Facts) -> None:
        self._test = rule.test
        self._facts = facts
        self.change: dict[str, Change] = {}
        self.ages: set[str] = set()
        self._samples: dict[str, dict[Any, None]] = {}
        for literal in rule.literals:
            self.change[literal.fact] = effective_change(literal, facts)
            self._samples.setdefault(literal.fact, {}).update(
                dict.fromkeys(literal.samples)
            )
            if literal.ages:
                self.ages.add(literal.fact)
        # What one literal takes for "any other" may be what another names.
        for fact, domain in {
            lit.fact: lit.domain for lit in rule.literals
        }.items():
            tried = self._samples[fact]
            for other in domain:
                if other not in tried:
                    tried[other] = None
                    break

    def named(self, *changes: Change) -> tuple[str, ...]:
        """Return the facts that change in one of these ways."""
        return tuple(
            f for f, change in self.change.items() if change in changes
        )

    def values(self, fact: str, varied: Iterable[str] = ()) -> tuple[Any, ...]:
        """Return the other values to try for a fact.

        :param varied: the facts that are varied together with it; an age
            that starts anew with one of them may be any
        """
        seen = self._facts.get(fact, UNREAD)
        samples = self._samples[fact]
        if fact in self.ages and _is_age(seen):
            free = not _RESTARTS.get(fact, frozenset()).isdisjoint(varied)
            return tuple(
                value
                for value in samples
                if value is None
                or (isinstance(value, Age) and (free or value > seen))
            )
        return tuple(value for value in samples if value != seen)

    def lifted(self, changed: Mapping[str, Any]) -> bool:
        """Return True where the rule is not false with these values.

        Undecided counts: a fact that was not read may lift.
        """
        return self._test({**self._facts, **changed}) is not False

    def solution(
        self, names: Iterable[str], ages: bool = True
    ) -> dict[str, Any] | None:
        """Return values of the facts named that lift, the fewest first.

        :param ages: whether ages may grow meanwhile; that what they are the
            age of ends is tried in any case
        :returns: None where nothing lifts; an empty mapping where too many
            combinations exist to try and the rule stays open without them
        """
        names = tuple(names)
        hidden = {k: v for k, v in self._facts.items() if k not in names}
        if not names or self._test(hidden) is False:
            return None
        choices = {
            name: tuple(
                value
                for value in self.values(name, names)
                if ages or not isinstance(value, Age)
            )
            for name in names
        }
        if math.prod(len(found) + 1 for found in choices.values()) > LIMIT:
            return {}
        for changed in _combinations(choices):
            if self.lifted(changed):
                return changed
        return None


def _is_age(value: Any) -> bool:
    """Return whether a value is an age to be reckoned with."""
    return (
        isinstance(value, Age)
        and isinstance(value.seconds, int | float)
        and math.isfinite(value.seconds)
    )


def _combinations(
    choices: Mapping[str, tuple[Any, ...]],
) -> Iterator[dict[str, Any]]:
    names = tuple(choices)
    for count in range(1, len(names) + 1):
        for chosen in itertools.combinations(names, count):
            for values in itertools.product(
                *(choices[name] for name in chosen)
            ):
                yield dict(zip(chosen, values, strict=True))


def lifts(rule: Rule, facts: Facts) -> tuple[Lift, ...]:
    """Return what would let the rule, false now, pass.

    Facts that lift alone come first, each with all values that do; where
    none does alone, the facts of the first combination that does.
    """
    variables = Variables(rule, facts)
    names = variables.named(Change.PASSING, Change.MOVABLE)
    single = []
    for name in names:
        values = tuple(
            value
            for value in variables.values(name)
            if variables.lifted({name: value})
        )
        if name in variables.ages:
            values = _least(values)
        if values:
            single.append(Lift(name, variables.change[name], values))
    if single:
        return tuple(single)
    together = variables.solution(names) or {}
    return tuple(
        Lift(name, variables.change[name], (value,), len(together) > 1)
        for name, value in together.items()
    )


def _least(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return the least age among values, and None if it is one of them."""
    found = tuple(value for value in values if isinstance(value, Age))
    rest = tuple(value for value in values if not isinstance(value, Age))
    return (*rest, min(found)) if found else rest


def liftable(rule: Rule, facts: Facts, *changes: Change) -> bool:
    """Return True where facts that change in these ways can lift together."""
    variables = Variables(rule, facts)
    return variables.solution(variables.named(*changes)) is not None


def waiting_time(rule: Rule, facts: Facts, otherwise: int) -> int | None:
    """Return after how many seconds the request is worth sending again.

    :param otherwise: seconds to say where something else can lift than that
        ages grow, such as the end of an action; when that happens nobody
        knows
    :returns: None where waiting does not help
    """
    variables = Variables(rule, facts)
    passing = variables.named(Change.PASSING)
    if variables.solution(passing, ages=False) is not None:
        return otherwise
    remaining = _remaining(variables, facts, passing)
    if remaining is not None:
        return remaining
    return otherwise if variables.solution(passing) is not None else None


def _remaining(
    variables: Variables, facts: Facts, passing: tuple[str, ...]
) -> int | None:
    """Return the least time after which the ages alone lift."""
    ages = {
        name: facts[name]
        for name in passing
        if name in variables.ages and _is_age(facts.get(name))
    }
    spans = {
        value.seconds - seen.seconds
        for name, seen in ages.items()
        for value in variables.values(name)
        if isinstance(value, Age)
    }
    for span in sorted(spans):
        grown = {
            name: Age(seen.seconds + span, seen.exact)
            for name, seen in ages.items()
        }
        if variables.lifted(grown):
            return max(1, -int(-span // 1))
    return None
