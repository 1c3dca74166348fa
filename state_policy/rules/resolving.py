# SPDX-License-Identifier: Apache-2.0
"""From named texts that refer to each other to resolved trees."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oslo_policy import policy

from state_policy.engine.expression import (
    All,
    Condition,
    Constant,
    Expression,
    Not,
    Reference,
)
from state_policy.engine.expression import Any as Some
from state_policy.rules.judging import Judging
from state_policy.rules.kinds.registry import RULE

#: Bounds of what a rule leads to: levels of nesting, through references, and
#: conditions in all. Evaluation recurses once or twice a level, within what
#: Python's stack leaves to a request.
MAX_LEVELS, MAX_SIZE = 100, 10_000
_MAX_CYCLES = 20

#: From a rule's name to the names it refers to, as often as it does.
Graph = Mapping[str, Iterable[str]]


def order(graph: Graph) -> list[str] | None:
    """Return the names so that each comes after those it refers to.

    :returns: None where there is a cycle
    """
    try:
        return list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError:
        return None


def cycles(graph: Graph) -> Iterator[list[str]]:
    """Yield the cycles of a graph, each as the names along it.

    Each is cut where it closes before the next is looked for.
    """
    left = {name: set(others) for name, others in graph.items()}
    for _ in range(_MAX_CYCLES):
        try:
            graphlib.TopologicalSorter(left).prepare()
        except graphlib.CycleError as error:
            # Of each pair the first is referred to by the second.
            names = error.args[1][::-1]
            yield names
            left[names[0]].discard(names[1])
        else:
            return


def reached(graph: Graph, names: Iterable[str]) -> set[str]:
    """Return the names given and all that they lead to."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(graph.get(name, ()))
    return found


def oversized(
    ordered: Iterable[str],
    graph: Graph,
    own: Mapping[str, tuple[int, int]],
) -> dict[str, str]:
    """Return why a rule leads to too much, by its name.

    :param ordered: the names by ``order``
    :param graph: without cycles
    :param own: levels and number of conditions that each rule states itself
    """
    levels: dict[str, int] = {}
    sizes: dict[str, int] = {}
    reasons = {}
    for name in ordered:
        others = list(graph.get(name, ()))
        level, size = own.get(name, (1, 1))
        levels[name] = level + max((levels[o] for o in others), default=0)
        sizes[name] = size + sum(sizes[other] for other in others)
        if levels[name] > MAX_LEVELS:
            reasons[name] = (
                f"is nested more than {MAX_LEVELS} levels deep through the"
                " rules it refers to"
            )
        elif sizes[name] > MAX_SIZE:
            reasons[name] = f"leads to more than {MAX_SIZE} conditions"
        # One report for the rule that grew too large, not for its users.
        if name in reasons:
            levels[name], sizes[name] = 1, 1
    return reasons


def resolve(
    ordered: Iterable[str], trees: Mapping[str, Any], judging: Judging
) -> dict[str, Expression]:
    """Return each rule as a tree of the engine's.

    :param ordered: the names by ``order``; every one has a tree
    :param trees: oslo.policy's tree of each rule by name
    """
    found: dict[str, Expression] = {}
    for name in ordered:
        found[name] = _convert(trees[name], found, judging)
    return {name: found[name] for name in trees}


def _convert(
    check: Any, found: Mapping[str, Expression], judging: Judging
) -> Expression:
    if isinstance(check, policy.AndCheck):
        return All(tuple(_convert(c, found, judging) for c in check.rules))
    if isinstance(check, policy.OrCheck):
        return Some(tuple(_convert(c, found, judging) for c in check.rules))
    if isinstance(check, policy.NotCheck):
        return Not(_convert(check.rule, found, judging))
    text = str(check)
    if text in ("@", "!"):
        return Constant(text == "@")
    kind, _, match = text.partition(":")
    if kind == RULE:
        return Reference(match, found[match])
    return Condition(judging.literal(kind, match))
