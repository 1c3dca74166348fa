# SPDX-License-Identifier: Apache-2.0
"""Rules, and parts of rules, that have no effect."""

from __future__ import annotations

from collections.abc import Iterator

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.compare import SWEEP_RULES
from state_policy.engine.analysis.context import Context
from state_policy.engine.analysis.finding import Finding
from state_policy.engine.analysis.outcome import Outcomes
from state_policy.engine.analysis.unparse import unparse
from state_policy.engine.expression import (
    All,
    Any,
    Expression,
    Not,
    Reference,
    literals,
)


def dead(context: Context) -> Iterator[Finding]:
    """Find rules that are never true, always true or without effect."""
    rules = context.analysis.rules
    used = _used(context)
    for name in context.sources:
        if name not in rules.expressions:
            continue
        expression = rules.expressions[name]
        if name not in used:
            yield context.finding("SP003", name, _unused(name))
        elif next(literals(expression), None) is not None:
            yield from _constant(context, name, expression)
    for outcomes in context.analysis.outcomes.values():
        yield from _unreached(context, outcomes)
        yield from _waits(context, outcomes)


def _used(context: Context) -> frozenset[str]:
    rules = context.analysis.rules
    found = {
        name
        for operation in rules.operations.values()
        for rule in operation.all
        for name in rule.names
    }
    for asked in SWEEP_RULES:
        if asked in rules.rules:
            found.update(rules.rules[asked].names)
    return frozenset(found)


def _unused(name: str) -> str:
    if name.startswith("class:"):
        return "decides nothing: each operation of the class has its own rule"
    return "is used by no operation"


def _constant(
    context: Context, name: str, expression: Expression
) -> Iterator[Finding]:
    true, false = context.analysis.project(expression)
    if true == 0:
        yield context.finding("SP001", name, "can never be true")
    elif false == 0:
        yield context.finding("SP002", name, "is true whatever the state is")
    else:
        for part in _idle_parts(context, expression):
            yield context.finding(
                "SP003", name, f"would be the same without `{unparse(part)}`"
            )


def _idle_parts(
    context: Context, expression: Expression
) -> Iterator[Expression]:
    """Yield the parts that can be left out, not through references.

    Of several that say the same the last is named, and only one.
    """
    if isinstance(expression, Not):
        yield from _idle_parts(context, expression.part)
    if not isinstance(expression, All | Any):
        return
    project = context.analysis.project
    kept = list(expression.parts)
    whole = project(expression)
    for part in reversed(expression.parts):
        if isinstance(part, Reference) and not any(literals(part)):
            # It follows a default that another file may state otherwise.
            continue
        others = [other for other in kept if other is not part]
        if others and _same(
            whole, project.join(expression, [project(p) for p in others])
        ):
            kept = others
            yield part
    for part in kept:
        yield from _idle_parts(context, part)


def _same(
    left: tuple[dd.Diagram, dd.Diagram], right: tuple[dd.Diagram, dd.Diagram]
) -> bool:
    return left[0] == right[0] and left[1] == right[1]


def _unreached(context: Context, outcomes: Outcomes) -> Iterator[Finding]:
    """Find suffixes that are true only where they are not asked."""
    make = context.make
    left = outcomes.passed
    for rule in outcomes.rules.all[2:]:
        suffix = rule.name.rpartition(":")[2]
        on = outcomes.suffixes[suffix]
        if (
            rule.name in context.sources
            and on != 0
            and make.both(on, left) == 0
        ):
            yield context.finding(
                "SP003",
                rule.name,
                "is never asked where it is true: there the operation is "
                "refused or an earlier suffix decides",
            )
        if suffix != "evidence":
            left = make.without(left, on)
        if suffix == "escalate":
            # Evidence is written before whatever follows the brake.
            left = make.without(outcomes.passed, outcomes.suffixes["brake"])


def _waits(context: Context, outcomes: Outcomes) -> Iterator[Finding]:
    make = context.make
    rule = outcomes.rules.wait
    on = outcomes.suffixes["wait"]
    if rule.name not in context.sources or on == 0:
        return
    asked = make.both(outcomes.refused, on)
    if asked == 0:
        yield context.finding(
            "SP009",
            rule.name,
            f"is true only where `{outcomes.rules.may.name}` does not refuse",
        )
    elif make.both(asked, outcomes.passing) == 0:
        yield context.finding(
            "SP008",
            rule.name,
            "waits for what does not pass by itself, as in "
            f"{context.example(asked)}: it refuses at once",
        )
