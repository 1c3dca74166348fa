# SPDX-License-Identifier: Apache-2.0
"""A rule as data, and its compilation to closures over facts.

Evaluation has three values: True, False and None for undecided, by Kleene's
strong logic. An undecided part does not spoil what the rest decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from state_policy.engine.facts import UNREAD, Facts
from state_policy.engine.literal import Literal

#: A compiled expression.
Test = Callable[[Facts], bool | None]


@dataclass(frozen=True, slots=True)
class Constant:
    """``@`` (True) or ``!`` (False)."""

    value: bool


@dataclass(frozen=True, slots=True)
class Condition:
    """A leaf."""

    literal: Literal


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite of one part."""

    part: Expression


@dataclass(frozen=True, slots=True)
class All:
    """True when every part is."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """True when some part is."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """Another rule of the same set, resolved: the graph has no cycle."""

    name: str
    to: Expression


Expression = Constant | Condition | Not | All | Any | Reference


def literals(expression: Expression) -> Iterator[Literal]:
    """Yield every literal, through references, in reading order."""
    if isinstance(expression, Condition):
        yield expression.literal
    elif isinstance(expression, Not):
        yield from literals(expression.part)
    elif isinstance(expression, Reference):
        yield from literals(expression.to)
    elif isinstance(expression, All | Any):
        for part in expression.parts:
            yield from literals(part)


def references(expression: Expression) -> Iterator[str]:
    """Yield the name of every rule it leads to, in reading order."""
    if isinstance(expression, Reference):
        yield expression.name
        yield from references(expression.to)
    elif isinstance(expression, Not):
        yield from references(expression.part)
    elif isinstance(expression, All | Any):
        for part in expression.parts:
            yield from references(part)


def blockers(
    expression: Expression, facts: Facts, wanted: bool = True
) -> Iterator[tuple[Literal, bool]]:
    """Yield the literals that keep an expression from being ``wanted``.

    Each comes with the value it has. Undecided literals are not among them.
    """
    if isinstance(expression, Condition):
        value = compile_expression(expression)(facts)
        if value is not None and value is not wanted:
            yield expression.literal, value
    elif isinstance(expression, Not):
        yield from blockers(expression.part, facts, not wanted)
    elif isinstance(expression, Reference):
        yield from blockers(expression.to, facts, wanted)
    elif isinstance(expression, All | Any):
        for part in expression.parts:
            # Of a conjunction only the parts that fail block; of a
            # disjunction that fails, all parts do: the same test.
            if compile_expression(part)(facts) is (not wanted):
                yield from blockers(part, facts, wanted)


def compile_expression(expression: Expression) -> Test:
    """Return a function from facts to True, False or None (undecided)."""
    if isinstance(expression, Constant):
        return _constant(expression.value)
    if isinstance(expression, Condition):
        return _condition(expression.literal)
    if isinstance(expression, Reference):
        return compile_expression(expression.to)
    if isinstance(expression, Not):
        return _negation(compile_expression(expression.part))
    parts = tuple(compile_expression(part) for part in expression.parts)
    if len(parts) == 1:
        return parts[0]
    return _all(parts) if isinstance(expression, All) else _any(parts)


def _constant(value: bool) -> Test:
    def constant(facts: Facts) -> bool | None:
        return value

    return constant


def _condition(literal: Literal) -> Test:
    key, test = literal.fact, literal.test

    def condition(facts: Facts) -> bool | None:
        value = facts.get(key, UNREAD)
        if value is UNREAD:
            return None
        try:
            return test(value)
        except Exception:  # noqa: BLE001
            # A kind of a third party that cannot judge a value has not
            # decided; it must not decide by failing.
            return None

    return condition


def _negation(part: Test) -> Test:
    def negation(facts: Facts) -> bool | None:
        value = part(facts)
        return None if value is None else not value

    return negation


def _all(parts: tuple[Test, ...]) -> Test:
    def every(facts: Facts) -> bool | None:
        result: bool | None = True
        for part in parts:
            value = part(facts)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return every


def _any(parts: tuple[Test, ...]) -> Test:
    def some(facts: Facts) -> bool | None:
        result: bool | None = False
        for part in parts:
            value = part(facts)
            if value:
                return True
            if value is None:
                result = None
        return result

    return some
