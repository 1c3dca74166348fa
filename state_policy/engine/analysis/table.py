# SPDX-License-Identifier: Apache-2.0
"""Operations by states, for one caller and one value of every other fact.

What is not given is taken for ordinary: the owner's server, launched, not
locked, on a host that answers, nothing running, no tags, little else going
on. Where another value of such a fact would change a decision, the table says
so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.outcome import Label, Outcomes
from state_policy.engine.analysis.regions import OTHER
from state_policy.engine.analysis.space import Axis, Space
from state_policy.engine.decision import Verdict
from state_policy.engine.facts import CALLER, UNREAD, Age, Facts
from state_policy.engine.ruleset import Rule

_ORDINARY: Mapping[str, Any] = {
    "server.launched": True,
    "server.locked": False,
    "server.disable_terminate": False,
    "server.host_up": True,
    "server.cell_up": True,
    "server.volume_backed": False,
    "server.power_state": "running",
    "quarantine.completed": False,
}


@dataclass(frozen=True)
class Row:
    """One operation.

    :ivar operation: its name
    :ivar cells: the states of each decision; together they are all
    :ivar varies: the states in which another value of a fact that was not
        given would change the decision
    :ivar facts: those facts
    """

    operation: str
    cells: Mapping[Label, int]
    varies: int
    facts: tuple[str, ...]

    def at(self, bit: int) -> Label:
        """Return the decision in one state."""
        return next(label for label, bits in self.cells.items() if bits & bit)


def row(
    space: Space, outcomes: Outcomes, choice: Sequence[int], given: set[int]
) -> Row:
    """Return one operation's row.

    :param choice: the region of each axis
    :param given: the axes whose region was given; the others may vary
    """
    fixed = {axis: choice[axis] for axis in given}
    cells: dict[Label, int] = {}
    possible: list[int] = []
    for label, diagram in outcomes.labels.items():
        bits = _at(diagram, choice)
        if bits:
            cells[label] = bits
        possible.append(_somewhere(diagram, fixed))
    varies = 0
    seen = 0
    for bits in possible:
        varies |= seen & bits
        seen |= bits
    facts = dict.fromkeys(
        space.axes[axis].fact for axis in outcomes.axes if axis not in given
    )
    return Row(
        outcomes.rules.operation.name,
        cells,
        varies,
        tuple(facts) if varies else (),
    )


def _at(diagram: dd.Diagram, choice: Sequence[int]) -> int:
    while not isinstance(diagram, int):
        diagram = diagram.children[choice[diagram.axis]]
    return diagram


def _somewhere(diagram: dd.Diagram, fixed: Mapping[int, int]) -> int:
    """Return the states in which a diagram holds for some other facts."""
    seen: set[dd.Diagram] = set()
    result = 0
    todo = [diagram]
    while todo:
        part = todo.pop()
        if part in seen:
            continue
        seen.add(part)
        if isinstance(part, int):
            result |= part
        elif part.axis in fixed:
            todo.append(part.children[fixed[part.axis]])
        else:
            todo.extend(part.children)
    return result


def place(space: Space, facts: Facts) -> tuple[list[int], set[int]]:
    """Return the region of each axis for facts that are given.

    :returns: the regions, ordinary ones where nothing is given, and the
        indexes of the axes that something is given for
    """
    choice = []
    given = set()
    for index, axis in enumerate(space.axes):
        value = facts.get(axis.fact, UNREAD)
        if value is UNREAD:
            choice.append(_ordinary(axis))
        else:
            given.add(index)
            known = {a.part for a in space.axes if a.fact == axis.fact}
            choice.append(_region(axis, value, known))
    return choice, given


def _ordinary(axis: Axis) -> int:
    labels = [region.label for region in axis.regions]
    wanted = _ORDINARY.get(axis.fact, UNREAD)
    for index, region in enumerate(axis.regions):
        if wanted is not UNREAD and region.has(wanted):
            return index
    if axis.ages or axis.part or OTHER not in labels:
        return 0
    return labels.index(OTHER)


def _region(axis: Axis, value: Any, known: set[str]) -> int:
    """Return the region of a value.

    :param known: the names that other axes ask about
    """
    if axis.fact == CALLER:
        return _caller(axis, value)
    if axis.part == OTHER:
        return int(any(name not in known - {OTHER} for name in _names(value)))
    if axis.part:
        return int(axis.part in _names(value))
    if value is None or isinstance(value, str | bool):
        return _equal(axis, value)
    found = 0
    for index, region in enumerate(axis.regions):
        if region.value is not None and _number(region.value) <= _number(
            value
        ):
            found = index
    if axis.regions[found].value is None and len(axis.regions) > 1:
        return 1
    return found


def _equal(axis: Axis, value: Any) -> int:
    labels = [region.label for region in axis.regions]
    for index, region in enumerate(axis.regions):
        if region.has(value):
            return index
    return labels.index(OTHER) if OTHER in labels else 0


def _names(value: Any) -> Iterable[str]:
    return (value,) if isinstance(value, str) else value or ()


def _number(value: Any) -> float:
    return value.seconds if isinstance(value, Age) else float(value)


def _caller(axis: Axis, credentials: Mapping[str, Any]) -> int:
    kind, _, match = axis.part.partition(":")
    if kind in ("role", "service_roles"):
        key = "roles" if kind == "role" else kind
        roles = [str(role).lower() for role in credentials.get(key) or ()]
        return int(match.lower() in roles)
    seen = str(credentials.get(kind))
    if match:
        own = match.removeprefix("%(").removesuffix(")s")
        return int(seen == str(credentials.get("target", {}).get(own)))
    values = [str(region.value) for region in axis.regions]
    return values.index(seen) if seen in values else 0


def deciding(outcomes: Outcomes, label: Label) -> Rule:
    """Return the rule that makes a decision."""
    rules = outcomes.rules
    found = {
        Verdict.WAIT: rules.wait,
        Verdict.BRAKE: rules.brake,
        Verdict.QUARANTINE: rules.quarantine,
        Verdict.ESCALATE: rules.escalate,
    }
    return found.get(label.verdict, rules.may)
