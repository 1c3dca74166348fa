# SPDX-License-Identifier: Apache-2.0
"""Which rules, and which outcomes of their conditions, cases reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from state_policy.engine.analysis.unparse import unparse
from state_policy.engine.expression import (
    All,
    Any,
    Expression,
    Not,
    compile_expression,
    literals,
)
from state_policy.engine.facts import Facts
from state_policy.engine.ruleset import Rule, RuleSet

#: Rules that the sweep asks, which no case can.
_SWEEP = "quarantine:"


@dataclass
class Reached:
    """What cases reached of one rule of a file.

    :ivar name: the rule
    :ivar place: its ``file:line``
    :ivar asked: whether a case asked it
    :ivar branches: for each condition of its text the outcomes seen
    """

    name: str
    place: str
    asked: bool = False
    branches: dict[str, set[bool]] = field(default_factory=dict)

    def total(self) -> int:
        """Return how much there is to reach."""
        return 1 + 2 * len(self.branches)

    def hit(self) -> int:
        """Return how much was reached."""
        return self.asked + sum(len(seen) for seen in self.branches.values())

    def missing(self) -> Iterator[str]:
        """Yield what was not reached, in words."""
        if not self.asked:
            yield f"{self.place}: `{self.name}` was asked by no test"
            return
        for text, seen in self.branches.items():
            for outcome in (True, False):
                if outcome not in seen:
                    word = "true" if outcome else "false"
                    yield (
                        f"{self.place}: `{self.name}`: no test where "
                        f"`{text}` is {word}"
                    )


class Coverage:
    """Notes what cases reach, over all rule sets they use."""

    def __init__(self) -> None:
        self.rules: dict[str, Reached] = {}
        self._seen: set[int] = set()

    def note(self, rules: RuleSet, operation: str, facts: Facts) -> None:
        """Note what deciding on an operation asks."""
        if id(rules) not in self._seen:
            self._seen.add(id(rules))
            for name, place in rules.sources.items():
                if not name.startswith(_SWEEP):
                    self._of(name, place, rules)
        for rule in asked(rules, operation, facts):
            for name in rule.names:
                if name in rules.sources:
                    self._note_rule(rules, name, facts)

    def percent(self) -> float:
        """Return how much was reached, of 100; 100 where there is nothing."""
        total = sum(found.total() for found in self.rules.values())
        hit = sum(found.hit() for found in self.rules.values())
        return 100.0 * hit / total if total else 100.0

    def missing(self) -> list[str]:
        """Return what was not reached."""
        return [
            line for found in self.rules.values() for line in found.missing()
        ]

    def _of(self, name: str, place: str, rules: RuleSet) -> Reached:
        found = self.rules.get(place)
        if found is None:
            found = self.rules[place] = Reached(name, place)
            for part in conditions(rules.expressions[name]):
                found.branches.setdefault(unparse(part), set())
        return found

    def _note_rule(self, rules: RuleSet, name: str, facts: Facts) -> None:
        found = self._of(name, rules.sources[name], rules)
        found.asked = True
        for part in conditions(rules.expressions[name]):
            outcome = compile_expression(part)(facts)
            if outcome is not None:
                found.branches[unparse(part)].add(outcome)


def asked(rules: RuleSet, operation: str, facts: Facts) -> Iterator[Rule]:
    """Yield the rules that a decision asks, in order."""
    found = rules.operations[operation]
    yield found.may
    may = found.may.test(facts)
    if may is False:
        yield found.wait
    elif may:
        for rule in (found.brake, found.evidence, found.quarantine):
            yield rule
            if rule is not found.evidence and rule.test(facts):
                return
        yield found.escalate


def conditions(expression: Expression) -> Iterator[Expression]:
    """Yield the conditions of a rule's own text; a reference is one."""
    if isinstance(expression, All | Any):
        for part in expression.parts:
            yield from conditions(part)
    elif isinstance(expression, Not):
        yield from conditions(expression.part)
    elif any(literals(expression)):
        # Without a literal it has one outcome only.
        yield expression
