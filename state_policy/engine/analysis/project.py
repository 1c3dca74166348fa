# SPDX-License-Identifier: Apache-2.0
"""Rules laid out over the space: where each is true and where it is false."""

from __future__ import annotations

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.space import Pair, Space
from state_policy.engine.expression import (
    All,
    Any,
    Condition,
    Constant,
    Expression,
    Not,
    Reference,
)


class Projector:
    """Lays expressions out over a space; each one once."""

    def __init__(self, space: Space) -> None:
        self._space = space
        # The expression is kept beside its result so that its id stays its.
        self._known: dict[int, tuple[Expression, Pair]] = {}

    def __call__(self, expression: Expression) -> Pair:
        """Return where an expression is true and where it is false."""
        found = self._known.get(id(expression))
        if found is None:
            found = expression, self._project(expression)
            self._known[id(expression)] = found
        return found[1]

    def _project(self, expression: Expression) -> Pair:
        if isinstance(expression, Constant):
            return (dd.FULL, 0) if expression.value else (0, dd.FULL)
        if isinstance(expression, Condition):
            return self._space.pair(expression.literal)
        if isinstance(expression, Reference):
            return self(expression.to)
        if isinstance(expression, Not):
            true, false = self(expression.part)
            return false, true
        return self.join(expression, [self(p) for p in expression.parts])

    def join(self, expression: All | Any, parts: list[Pair]) -> Pair:
        """Return what a conjunction or disjunction makes of its parts."""
        make = self._space.diagrams
        conjunction = isinstance(expression, All)
        strict, loose = (0, 1) if conjunction else (1, 0)
        every: dd.Diagram = dd.FULL
        for part in parts:
            every = make.both(every, part[strict])
        some = make.union([part[loose] for part in parts])
        return (every, some) if conjunction else (some, every)
