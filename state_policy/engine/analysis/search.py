# SPDX-License-Identifier: Apache-2.0
"""All findings of a rule set."""

from __future__ import annotations

from collections.abc import Iterator

from state_policy.engine.analysis.bypass import changeable, twins
from state_policy.engine.analysis.context import Context
from state_policy.engine.analysis.deadness import dead
from state_policy.engine.analysis.exits import ways_out
from state_policy.engine.analysis.finding import Finding
from state_policy.engine.analysis.opacity import opaque
from state_policy.engine.analysis.outcome import Analysis
from state_policy.engine.ruleset import RuleSet

_SEARCHES = (dead, ways_out, opaque, twins, changeable)


def findings(rules: RuleSet) -> tuple[Finding, ...]:
    """Return everything that is likely wrong with a rule set.

    Sorted by severity, then by code and rule; each once.
    """
    return search(Analysis(rules))


def search(analysis: Analysis) -> tuple[Finding, ...]:
    """Return the findings of a rule set that is laid out already."""
    context = Context(analysis)
    found = dict.fromkeys(_found(context))
    return tuple(
        sorted(found, key=lambda f: (-f.severity, f.code, f.rule, f.message))
    )


def _found(context: Context) -> Iterator[Finding]:
    for look in _SEARCHES:
        yield from look(context)
    for bound in dict.fromkeys(context.space.bounds):
        yield context.finding("SP013", "", bound)
