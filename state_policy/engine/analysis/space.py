# SPDX-License-Identifier: Apache-2.0
"""The decision space: every fact that rules look at, cut into regions.

Two values of a fact are in one region when no condition of the rule sets
under analysis tells them apart, by the samples each condition declares. So
the space is exact, not sampled, under two rules that kinds keep:

* ``Literal.samples`` tells every outcome of a test apart;
* a condition on a set of names (aggregates, tags) holds when one of the
  names does, so that each name is a question of its own. A condition that
  breaks this is named in ``Space.bounds``.

vm_state and task_state are not cut: they are the leaves of the diagrams.
Callers are cut by what their credentials say: one question for each role,
and one for each other key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.regions import (
    NO,
    OTHER,
    YES,
    Region,
    cut,
    is_set,
    member_names,
    outcome,
)
from state_policy.engine.facts import CALLER
from state_policy.engine.literal import Change, Literal
from state_policy.engine.ruleset import RuleSet
from state_policy.engine.states import VM_STATES

VM_STATE = "server.vm_state"
TASK_STATE = "server.task_state"


@dataclass(frozen=True)
class Axis:
    """One question about a fact, and the regions of its answers.

    :ivar fact: key of the fact
    :ivar part: what is asked of a fact with several questions: a name of a
        set, ``role:admin`` of a caller; else empty
    :ivar regions: the answers
    :ivar change: how the fact can change
    :ivar ages: True where regions are ages, which only grow
    """

    fact: str
    part: str
    regions: tuple[Region, ...]
    change: Change
    ages: bool = False

    def __str__(self) -> str:
        return f"{self.fact}:{self.part}" if self.part else self.fact


#: Credentials that are always there, true or false.
FLAGS = frozenset({"is_admin", "is_admin_project"})
_EMPTY: frozenset[str] = frozenset()

#: A condition on the space: where it is true and where it is false. Where
#: neither holds it is undecided.
Pair = tuple[dd.Diagram, dd.Diagram]


class Space:
    """The space that all conditions of some rule sets make together.

    :ivar axes: the questions, in the order the diagrams ask them
    :ivar arity: number of regions of each
    :ivar bounds: what could not be kept exact; empty as a rule
    """

    def __init__(self, *rule_sets: RuleSet) -> None:
        self.diagrams = dd.Diagrams()
        self.bounds: list[str] = []
        self.axes: list[Axis] = []
        self._literals: dict[Literal, Pair] = {}
        by_fact: dict[str, dict[Literal, None]] = {}
        for literal in _all_literals(rule_sets):
            by_fact.setdefault(literal.fact, {})[literal] = None
        for fact in sorted(by_fact, key=lambda name: (name != CALLER, name)):
            self._add(fact, tuple(by_fact[fact]))
        self.arity = tuple(len(axis.regions) for axis in self.axes)

    def pair(self, literal: Literal) -> Pair:
        """Return where a condition is true and where it is false."""
        return self._literals[literal]

    def of(self, fact: str) -> tuple[int, ...]:
        """Return the indexes of the axes of a fact."""
        return tuple(
            index for index, axis in enumerate(self.axes) if axis.fact == fact
        )

    def cells(self, axes: Iterable[int] = ()) -> int:
        """Return the size of the space that these axes and the states make."""
        size = dd.PLANE
        for axis in axes:
            size *= self.arity[axis]
        return size

    def _add(self, fact: str, literals: Sequence[Literal]) -> None:
        if fact in (VM_STATE, TASK_STATE):
            self._add_states(literals)
        elif fact == CALLER:
            self._add_caller(literals)
        elif is_set(literals):
            self._add_set(fact, literals)
        else:
            regions, signatures = cut(literals)
            axis = self._axis(fact, "", regions, literals[0])
            for literal, outcomes in zip(literals, signatures, strict=True):
                self._keep(literal, axis, outcomes)

    def _axis(
        self, fact: str, part: str, regions: Sequence[Region], of: Literal
    ) -> int:
        self.axes.append(Axis(fact, part, tuple(regions), of.change, of.ages))
        return len(self.axes) - 1

    def _keep(
        self, literal: Literal, axis: int, outcomes: Sequence[bool | None]
    ) -> None:
        """Keep a condition that one axis decides."""
        self._literals[literal] = tuple(  # type: ignore[assignment]
            self.diagrams.node(
                axis, [dd.FULL if o is wanted else 0 for o in outcomes]
            )
            for wanted in (True, False)
        )

    def _add_states(self, literals: Sequence[Literal]) -> None:
        for literal in literals:
            rows = literal.fact == VM_STATE
            sides = {True: 0, False: 0, None: 0}
            for index, value in enumerate(VM_STATES if rows else dd.TASKS):
                bits = (
                    dd.ROW << (index * dd.WIDTH)
                    if rows
                    else dd.COLUMN << index
                )
                sides[outcome(literal, value)] |= bits
            self._literals[literal] = sides[True], sides[False]

    def _add_set(self, fact: str, literals: Sequence[Literal]) -> None:
        """Ask about each name of a set apart."""
        absent = None
        if any(outcome(lit, None) != outcome(lit, _EMPTY) for lit in literals):
            # Conditions of a third party that tell "no set" from "empty".
            regions = Region(_EMPTY, "known"), Region(None, "none")
            absent = self._axis(fact, "", regions, literals[0])
        asked = {
            name: self._axis(
                fact, name, (Region(False, NO), Region(True, YES)), literals[0]
            )
            for name in (*member_names(literals), OTHER)
        }
        for literal in literals:
            self._keep_set(literal, absent, asked)

    def _keep_set(
        self, literal: Literal, absent: int | None, asked: dict[str, int]
    ) -> None:
        """Keep a condition that holds when it does for one of the names."""
        make = self.diagrams
        own = frozenset(member_names([literal]))
        has = {n: make.node(axis, (0, dd.FULL)) for n, axis in asked.items()}
        alone = {
            name: outcome(literal, frozenset({name if name in own else OTHER}))
            for name in asked
        }
        nothing = make.invert(make.union(list(has.values())))
        sides: list[dd.Diagram] = []
        for wanted in (True, None):
            # First what is true, then what is true or undecided.
            good = {True, wanted}
            some = make.union([has[n] for n, o in alone.items() if o in good])
            if outcome(literal, _EMPTY) in good:
                some = make.either(some, nothing)
            if absent is not None:
                missing = dd.FULL * (outcome(literal, None) in good)
                some = self._split(absent, some, missing)
            sides.append(some)
        self._literals[literal] = sides[0], make.invert(sides[1])
        if own and outcome(literal, own) is not _some(alone, own):
            self.bounds.append(
                f"`{literal}` does not hold when one of its names does; it "
                "is taken as if it did"
            )

    def _split(
        self, axis: int, known: dd.Diagram, missing: dd.Diagram
    ) -> dd.Diagram:
        """Return one diagram where there is a set, another where not."""
        make = self.diagrams
        there = make.node(axis, (dd.FULL, 0))
        return make.either(
            make.both(there, known), make.without(missing, there)
        )

    def _add_caller(self, literals: Sequence[Literal]) -> None:
        """Ask about each role, and about the value of each other key."""
        keys: dict[tuple[str, str], list[Literal]] = {}
        for literal in literals:
            keys.setdefault(_question(literal), []).append(literal)
        for (kind, own), found in sorted(keys.items()):
            if own:
                asked = (Region(False, NO), Region(True, YES))
                axis = self._axis(CALLER, f"{kind}:{own}", asked, found[0])
                for literal in found:
                    self._keep(literal, axis, (False, True))
                continue
            values = dict.fromkeys(literal.match for literal in found)
            others = () if kind in FLAGS else (Region(None, OTHER),)
            if kind in FLAGS:
                values = dict.fromkeys(("False", "True"))
            regions = (*others, *(Region(v, v) for v in values))
            axis = self._axis(CALLER, kind, regions, found[0])
            for literal in found:
                self._keep(
                    literal,
                    axis,
                    [region.value == literal.match for region in regions],
                )


def _some(alone: dict[str, bool | None], names: Iterable[str]) -> bool | None:
    """Return the outcome of "one of these", by three-valued logic."""
    found = {alone[name] for name in names}
    if True in found:
        return True
    return None if None in found else False


def _question(literal: Literal) -> tuple[str, str]:
    """Return which question about the caller answers a condition.

    :returns: the credential, and what is asked of it where that is a question
        of its own: a caller can have several roles, and a value taken from
        the server (``project_id:%(project_id)s``) equals it or not
    """
    if literal.kind in ("role", "roles"):
        return "role", literal.match.lower()
    if literal.kind == "service_roles" or "%(" in literal.match:
        return literal.kind, literal.match
    return literal.kind, ""


def _all_literals(rule_sets: Iterable[RuleSet]) -> Iterable[Literal]:
    for rules in rule_sets:
        for rule in rules.rules.values():
            yield from rule.literals
