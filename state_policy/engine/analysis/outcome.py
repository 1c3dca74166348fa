# SPDX-License-Identifier: Apache-2.0
"""What the rules of an operation decide, over the whole space.

The same order as ``engine.evaluate``, cell sets instead of cells. A test
compares the two.
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from state_policy.engine import changes
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.project import Projector
from state_policy.engine.analysis.space import TASK_STATE, VM_STATE, Space
from state_policy.engine.changes import Phase
from state_policy.engine.decision import Verdict
from state_policy.engine.facts import Age
from state_policy.engine.literal import Change
from state_policy.engine.ruleset import OperationRules, Rule, RuleSet

#: Ages that start anew when one of these facts changes.
_RESTARTS = {
    "server.state_age": frozenset({VM_STATE, TASK_STATE}),
    "server.running_age": frozenset({"server.running"}),
}


def _phases() -> Mapping[Phase, int]:
    """Return the states of each phase; together they are all."""
    found: dict[Phase, int] = {}
    for vm_state, task_state in dd.pairs(dd.FULL):
        now = changes.phase(vm_state, task_state)
        found[now] = found.get(now, 0) | dd.pair_bit(vm_state, task_state)
    return found


_PHASES = _phases()


class Label(NamedTuple):
    """What can be told apart about decisions.

    :ivar verdict: what happens
    :ivar code: HTTP status of a refusal, else None
    :ivar evidence: whether evidence is written first
    """

    verdict: Verdict
    code: int | None = None
    evidence: bool = False

    def __str__(self) -> str:
        text = str(self.verdict)
        if self.verdict is Verdict.DENY:
            text += f" {self.code}"
        return text + " with evidence" if self.evidence else text


@dataclass(frozen=True)
class Outcomes:
    """Where each decision of one operation is made.

    :ivar rules: the rules of the operation
    :ivar refused: where the rule itself is false
    :ivar passed: where it is true
    :ivar suffixes: where each suffix is true, whatever the rule says
    :ivar passing: where it is refused and facts that pass could lift
    :ivar movable: where it is refused and passing or movable facts could
    """

    rules: OperationRules
    refused: dd.Diagram
    passed: dd.Diagram
    suffixes: Mapping[str, dd.Diagram]
    passing: dd.Diagram
    movable: dd.Diagram
    make: dd.Diagrams

    @cached_property
    def labels(self) -> Mapping[Label, dd.Diagram]:
        """Return the cells of each decision; together they are all."""
        make, on = self.make, self.suffixes
        found = self._refusals()
        left = self.passed
        found[Label(Verdict.BRAKE, 429)] = make.both(left, on["brake"])
        left = make.without(left, on["brake"])
        undecided = make.invert(make.either(self.refused, self.passed))
        found[Label(Verdict.ALLOW)] = undecided
        for verdict in (Verdict.QUARANTINE, Verdict.ESCALATE, Verdict.ALLOW):
            here = left
            if verdict is not Verdict.ALLOW:
                here = make.both(left, on[verdict.value])
                left = make.without(left, on[verdict.value])
            for evidence in (True, False):
                part = make.both(
                    here,
                    on["evidence"]
                    if evidence
                    else make.invert(on["evidence"]),
                )
                label = Label(verdict, None, evidence)
                found[label] = make.either(found.get(label, 0), part)
        return {label: cells for label, cells in found.items() if cells != 0}

    def _refusals(self) -> dict[Label, dd.Diagram]:
        make = self.make
        waits = make.both(self.passing, self.suffixes["wait"])
        later = make.without(self.movable, waits)
        return {
            Label(Verdict.WAIT, 409): waits,
            Label(Verdict.DENY, 409): later,
            Label(Verdict.DENY, 403): make.without(
                make.without(self.refused, waits), later
            ),
        }

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """Return the axes that the decision asks."""
        return dd.axes_of(*self.labels.values())

    def where(self, *verdicts: Verdict) -> dd.Diagram:
        """Return where one of the verdicts is given."""
        return self.make.union(
            [
                cells
                for label, cells in self.labels.items()
                if label.verdict in verdicts
            ]
        )


class Analysis:
    """One rule set over a space, operation by operation.

    :ivar rules: the rule set
    :ivar space: its space, or the common one of several sets
    """

    def __init__(self, rules: RuleSet, space: Space | None = None) -> None:
        self.rules = rules
        self.space = space or Space(rules)
        self.project = Projector(self.space)

    @cached_property
    def outcomes(self) -> Mapping[str, Outcomes]:
        """Return the outcomes of every operation by its name."""
        return {
            name: self._outcomes(found)
            for name, found in self.rules.operations.items()
        }

    def _outcomes(self, found: OperationRules) -> Outcomes:
        passed, refused = self.project(found.may.expression)
        passing, movable = self._liftable(found.may, refused)
        return Outcomes(
            rules=found,
            refused=refused,
            passed=passed,
            suffixes={
                suffix: self.project(rule.expression)[0]
                for suffix, rule in zip(_SUFFIXES, found.all[1:], strict=True)
            },
            passing=passing,
            movable=movable,
            make=self.space.diagrams,
        )

    def _liftable(
        self, may: Rule, refused: dd.Diagram
    ) -> tuple[dd.Diagram, dd.Diagram]:
        """Return where a refusal is lifted by passing, and by movable facts.

        Both are parts of ``refused``.
        """
        if refused == 0 or not may.literals:
            return 0, 0
        make = self.space.diagrams
        open_ = make.invert(refused)
        passing: dd.Diagram = 0
        movable: dd.Diagram = 0
        for now, states in self._phases(may):
            here = make.both(refused, states)
            if here == 0:
                continue
            found = self._lift(may, open_, now, Change.PASSING)
            passing = make.either(passing, make.both(here, found))
            found = self._lift(may, open_, now, Change.PASSING, Change.MOVABLE)
            movable = make.either(movable, make.both(here, found))
        return passing, movable

    def _phases(self, may: Rule) -> Iterator[tuple[Phase, int]]:
        """Yield the phases that a rule tells apart, and their states."""
        varying = dict.fromkeys(
            (lit.fact, lit.change)
            for lit in may.literals
            if lit.fact in changes.VARYING
        )
        grouped: dict[tuple[Change, ...], tuple[Phase, int]] = {}
        for now, states in _PHASES.items():
            key = tuple(
                changes.change(fact, usual, value, now)
                for fact, usual in varying
                for value in self._values(fact)
            )
            first, others = grouped.get(key, (now, 0))
            grouped[key] = first, others | states
        yield from grouped.values()

    def _values(self, fact: str) -> tuple[object, ...]:
        """Return a value of each region of a fact; any one of a set."""
        axes = self.space.of(fact)
        if len(axes) != 1:
            return (None,)
        return tuple(r.value for r in self.space.axes[axes[0]].regions)

    def _lift(
        self, may: Rule, open_: dd.Diagram, now: Phase, *ways: Change
    ) -> dd.Diagram:
        """Return from where a rule can be opened by facts that so change."""
        stays = {
            lit.fact: _stays(lit.fact, lit.change, now, ways)
            for lit in may.literals
        }
        varied = {
            fact
            for fact, stay in stays.items()
            if not all(stay(value) for value in self._values(fact))
        }
        found = open_
        for fact in sorted(varied - {VM_STATE, TASK_STATE}):
            axes = self.space.of(fact)
            if any(self.space.axes[axis].part for axis in axes):
                found = vary_set(self.space, found, axes)
                continue
            free = not _RESTARTS.get(fact, frozenset()).isdisjoint(varied)
            found = vary(self.space, found, axes, free, stays=stays[fact])
        make = self.space.diagrams
        if VM_STATE in varied:
            found = make.over_states(
                found, dd.any_state if TASK_STATE in varied else any_vm_state
            )
        elif TASK_STATE in varied:
            found = make.over_states(found, dd.any_task)
        return found


def _stays(
    fact: str, usual: Change, now: Phase, ways: Collection[Change]
) -> Callable[[object], bool]:
    """Return which values of a fact do not change in these ways."""

    def stays(value: object) -> bool:
        return changes.change(fact, usual, value, now) not in ways

    return stays


def _never(value: object) -> bool:
    return False


def vary(
    space: Space,
    cells: dd.Diagram,
    axes: Iterable[int],
    free: bool = False,
    ends: bool = True,
    stays: Callable[[object], bool] = _never,
) -> dd.Diagram:
    """Return from where facts can come to the cells by changing.

    :param free: ages too may become any; else they grow
    :param ends: what an age is the age of may end, so that there is none
    :param stays: which values do not change
    """
    for index in axes:
        axis = space.axes[index]
        values = [region.value for region in axis.regions]
        every = list(range(len(values)))
        reached = [
            [at]
            if stays(value)
            else every
            if free or not axis.ages
            else _later(values, at, ends)
            for at, value in enumerate(values)
        ]
        if all(regions == every for regions in reached):
            cells = space.diagrams.exists(cells, index)
        else:
            cells = space.diagrams.reach(cells, index, reached)
    return cells


def vary_set(
    space: Space, cells: dd.Diagram, axes: tuple[int, ...]
) -> dd.Diagram:
    """Return from where a set comes to the cells by having one name or none.

    As lifting tries it: sets of several names are not tried.
    """
    make = space.diagrams
    reached = cells
    for only in (None, *axes):
        chosen = cells
        for axis in axes:
            chosen = make.choose(chosen, axis, int(axis == only))
        reached = make.either(reached, chosen)
    return reached


def _later(values: list[object], at: int, ends: bool) -> list[int]:
    """Return the regions an age comes to: its own and all greater ones."""
    seen = values[at]
    if not isinstance(seen, Age):
        return list(range(len(values)))
    return [
        index
        for index, value in enumerate(values)
        if index == at
        or (isinstance(value, Age) and value > seen)
        or (value is None and ends)
    ]


def any_vm_state(bits: int) -> int:
    """Return the pairs from which some vm_state leads into the set."""
    tasks = 0
    while bits:
        tasks |= bits & dd.ROW
        bits >>= dd.WIDTH
    return tasks * dd.COLUMN


_SUFFIXES = ("wait", "brake", "quarantine", "escalate", "evidence")
