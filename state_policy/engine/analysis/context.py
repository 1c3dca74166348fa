# SPDX-License-Identifier: Apache-2.0
"""What every search for findings asks of a rule set."""

from __future__ import annotations

from collections.abc import Sequence

from state_policy.engine.analysis import cells
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.finding import Finding
from state_policy.engine.analysis.outcome import Analysis
from state_policy.engine.ruleset import Rule

#: So many items of a list are shown in one line.
_SHOWN = 6


class Context:
    """A rule set under analysis.

    :ivar analysis: its diagrams
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.space = analysis.space
        self.make = analysis.space.diagrams
        self.sources = analysis.rules.sources

    def stated(self, rule: Rule) -> str | None:
        """Return the rule of a file that decides, or None for a default.

        The first of the rules that a default leads to, itself included.
        """
        for name in rule.names:
            if name in self.sources:
                return name
        return None

    def finding(self, code: str, rule: str, message: str) -> Finding:
        """Return a finding about a rule, with its place."""
        return Finding(code, rule, self.sources.get(rule, ""), message)

    def example(self, diagram: dd.Diagram) -> str:
        """Return one cell in words: ``active/none with tag:keep``."""
        regions, bits = next(dd.paths(diagram))
        state = next(dd.pairs(bits))
        text = f"{state[0]}/{state[1] or 'none'}"
        found = cells.words(
            self.space, {axis: some[:1] for axis, some in regions.items()}
        )
        return cells.qualified(text, found)


def listed(items: Sequence[str]) -> str:
    """Return names as a list of bounded length."""
    shown = list(items[:_SHOWN])
    if len(items) > _SHOWN:
        shown.append(f"{len(items) - _SHOWN} more")
    return ", ".join(shown)
