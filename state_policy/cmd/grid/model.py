# SPDX-License-Identifier: Apache-2.0
"""What the matrix shows: rule sets, callers and ages, cell by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis import table
from state_policy.engine.analysis.outcome import Analysis, Label
from state_policy.engine.analysis.space import Space
from state_policy.engine.analysis.status import status_of, statuses
from state_policy.engine.analysis.unparse import unparse
from state_policy.engine.decision import Verdict
from state_policy.engine.facts import CALLER, Facts
from state_policy.engine.ruleset import RuleSet

#: A sign for each verdict, for those who do not see the colour.
SIGNS: Mapping[Verdict, str] = {
    Verdict.ALLOW: "✓",
    Verdict.DENY: "✕",
    Verdict.WAIT: "…",
    Verdict.BRAKE: "‖",
    Verdict.QUARANTINE: "▣",
    Verdict.ESCALATE: "↑",
}
#: The same for terminals.
LETTERS: Mapping[Verdict, str] = {
    Verdict.ALLOW: "+",
    Verdict.DENY: "-",
    Verdict.WAIT: "w",
    Verdict.BRAKE: "b",
    Verdict.QUARANTINE: "q",
    Verdict.ESCALATE: "e",
}


@dataclass(frozen=True)
class Named:
    """A rule set and what it is called."""

    name: str
    rules: RuleSet


class Grid:
    """Rule sets over their common space, for given facts.

    :ivar sets: one rule set, or two to be shown side by side
    :ivar operations: the operations shown
    """

    def __init__(self, sets: Sequence[Named], operations: Sequence[str]):
        self.sets = tuple(sets)
        self.space = Space(*(named.rules for named in sets))
        self.analyses = [Analysis(n.rules, self.space) for n in sets]
        self.operations = tuple(operations)

    def rows(self, facts: Facts) -> list[list[table.Row]]:
        """Return for each set a row for each operation."""
        choice, given = table.place(self.space, facts)
        return [
            [
                table.row(self.space, analysis.outcomes[name], choice, given)
                for name in self.operations
            ]
            for analysis in self.analyses
        ]

    def rule(
        self, number: int, operation: str, label: Label
    ) -> dict[str, Any]:
        """Return the rule of a set that makes a decision, and its place."""
        analysis = self.analyses[number]
        rule = table.deciding(analysis.outcomes[operation], label)
        sources = analysis.rules.sources
        # A default leads to the rule that a file states, or that is one.
        stated = next((n for n in rule.names if n in sources), rule.names[-1])
        expression = analysis.rules.expressions.get(stated)
        return {
            "rule": rule.name,
            "stated": stated,
            "text": unparse(expression) if expression is not None else "!",
            "place": sources.get(stated, "default"),
        }

    def records(self, facts: Facts) -> Iterator[dict[str, Any]]:
        """Yield every cell as a row for machines."""
        all_rows = self.rows(facts)
        for index, operation in enumerate(self.operations):
            for vm_state, task_state in dd.pairs(dd.FULL):
                record: dict[str, Any] = {
                    "operation": operation,
                    "status": status_of(vm_state, task_state),
                    "vm_state": vm_state,
                    "task_state": task_state or "none",
                }
                for number, rows in enumerate(all_rows):
                    record |= self._cell(
                        number, rows[index], vm_state, task_state
                    )
                yield record

    def _cell(
        self, number: int, row: table.Row, vm_state: str, task: str | None
    ) -> dict[str, Any]:
        end = "" if number == 0 else "_2"
        bit = dd.pair_bit(vm_state, task)
        label = row.at(bit)
        return {
            f"verdict{end}": str(label.verdict),
            f"code{end}": label.code,
            f"evidence{end}": label.evidence,
            f"rule{end}": self.rule(number, row.operation, label)["rule"],
            f"varies_with{end}": list(row.facts) if row.varies & bit else [],
        }

    def roles(self) -> list[str]:
        """Return the roles that rules name, ``member`` first."""
        named = {
            axis.part.partition(":")[2]
            for axis in self.space.axes
            if axis.fact == CALLER and axis.part.startswith("role:")
        }
        return ["member", *sorted(named - {"member"})]

    def ages(self) -> list[tuple[str, Any]]:
        """Return the regions of the age in a state: label and value."""
        for index in self.space.of("server.state_age"):
            regions = self.space.axes[index].regions
            return [(region.label, region.value) for region in regions]
        return [("any", None)]


def signs(row: table.Row, mask: int, letters: Mapping[Verdict, str]) -> str:
    """Return the signs of all decisions in some states, each once."""
    found = dict.fromkeys(
        letters[label.verdict]
        for label, bits in row.cells.items()
        if bits & mask
    )
    return "".join(found) + ("*" if row.varies & mask else "")


def columns() -> Mapping[str, int]:
    """Return the visible statuses and their states."""
    return statuses()
