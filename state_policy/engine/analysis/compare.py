# SPDX-License-Identifier: Apache-2.0
"""Where two rule sets decide differently: exactly, over their common space."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from state_policy.engine.analysis import cells
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.outcome import Analysis, Label, Outcomes
from state_policy.engine.analysis.space import Space
from state_policy.engine.expression import Constant
from state_policy.engine.operations import CLASSES, OPERATIONS
from state_policy.engine.ruleset import RuleSet

#: Rules that no operation asks.
SWEEP_RULES = ("quarantine:purge", "quarantine:release")
NEVER = Constant(False)
#: What a set decides: for a rule of the sweep ``yes`` or ``no``.
Decided = Label | str


@dataclass(frozen=True)
class Difference:
    """Cells of one operation that two sets decide differently.

    :ivar operation: name of the operation, or of a rule that the sweep asks
    :ivar old: what the old set decides
    :ivar new: what the new set decides
    :ivar where: the cells
    :ivar axes: the axes that make the operation's space
    """

    operation: str
    old: Decided
    new: Decided
    where: dd.Diagram
    axes: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """Some cells of a difference that can be said in one line.

    :ivar facts: labels of the regions, by what is asked
    :ivar states: the (vm_state, task_state) pairs
    :ivar text: the same in words, with the caller apart
    :ivar caller: who it is about, empty for everyone
    :ivar cells: how many cells these are
    """

    facts: dict[str, list[str]]
    states: list[tuple[str, str | None]]
    text: str
    caller: str
    cells: int


class Comparison:
    """Two rule sets, compared.

    :ivar old: the analysis of the old set
    :ivar new: that of the new
    :ivar space: the space they have in common: ages are cut at the
        thresholds of both
    """

    def __init__(self, old: RuleSet, new: RuleSet) -> None:
        self.space = Space(old, new)
        self.old = Analysis(old, self.space)
        self.new = Analysis(new, self.space)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Return all differences, operation by operation."""
        return (
            *(
                difference
                for name, old in self.old.outcomes.items()
                for difference in self._compare(
                    name, old, self.new.outcomes[name]
                )
            ),
            *(
                difference
                for name in SWEEP_RULES
                for difference in self._compare_sweep(name)
            ),
        )

    def _compare_sweep(self, name: str) -> Iterator[Difference]:
        """Compare a rule that is asked about servers in quarantine."""
        make = self.space.diagrams
        old, new = self._sweep(name)
        axes = dd.axes_of(old, new)
        for before, after, where in (
            ("no", "yes", make.without(new, old)),
            ("yes", "no", make.without(old, new)),
        ):
            if where != 0:
                yield Difference(name, before, after, where, axes)

    def _sweep(self, name: str) -> tuple[dd.Diagram, dd.Diagram]:
        """Return where a rule of the sweep is true in either set."""
        old, new = (
            side.project(side.rules.expressions.get(name, NEVER))[0]
            for side in (self.old, self.new)
        )
        return old, new

    def _compare(
        self, name: str, old: Outcomes, new: Outcomes
    ) -> Iterator[Difference]:
        make = self.space.diagrams
        axes = tuple(sorted({*old.axes, *new.axes}))
        for before, left in old.labels.items():
            for after, right in new.labels.items():
                if before == after:
                    continue
                where = make.both(left, right)
                if where != 0:
                    yield Difference(name, before, after, where, axes)

    @cached_property
    def cells(self) -> int:
        """Return how many cells were compared, all operations together."""
        return sum(
            self.space.cells({*old.axes, *self.new.outcomes[name].axes})
            for name, old in self.old.outcomes.items()
        ) + sum(
            self.space.cells(dd.axes_of(*self._sweep(name)))
            for name in SWEEP_RULES
        )

    def count(self, difference: Difference) -> int:
        """Return how many cells a difference has."""
        return dd.count(difference.where, self.space.arity, difference.axes)

    def parts(self, difference: Difference) -> Iterator[Part]:
        """Yield the parts of a difference; they do not overlap."""
        for regions, bits in dd.paths(difference.where):
            free = self.space.cells(set(difference.axes) - set(regions))
            size = free // dd.PLANE * bits.bit_count()
            for allowed in regions.values():
                size *= len(allowed)
            words = cells.words(self.space, regions, caller=False)
            text = cells.qualified(cells.states(bits), words)
            yield Part(
                facts={
                    str(self.space.axes[axis]): [
                        self.space.axes[axis].regions[i].label for i in some
                    ]
                    for axis, some in regions.items()
                },
                states=list(dd.pairs(bits)),
                text=text,
                caller=cells.caller_words(self.space, regions),
                cells=size,
            )

    def lines(self) -> Iterator[str]:
        """Yield the differences in words.

        Operations that differ alike are in one line: ``delete in building/*
        with state_age <60m: allow -> deny 403 for member``.
        """
        alike: dict[
            tuple[Label | str, Label | str, dd.Diagram], list[Difference]
        ] = {}
        for found in self.differences:
            alike.setdefault((found.old, found.new, found.where), []).append(
                found
            )
        for (old, new, _), group in alike.items():
            names = ", ".join(named([found.operation for found in group]))
            for part in self.parts(group[0]):
                who = f" for {part.caller}" if part.caller else ""
                yield f"{names} in {part.text}: {old} -> {new}{who}"


def named(operations: Sequence[str]) -> list[str]:
    """Return names of operations, whole classes as ``class:power``."""
    left = list(operations)
    found = []
    for cls in CLASSES:
        members = {
            name for name, op in OPERATIONS.items() if cls in op.classes
        }
        if len(members) > 1 and members <= {*operations}:
            found.append(f"class:{cls}")
            left = [name for name in left if name not in members]
    return [*found, *left]
