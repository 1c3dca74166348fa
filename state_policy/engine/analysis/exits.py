# SPDX-License-Identifier: Apache-2.0
"""Whether a server's owner can always get rid of it.

A way out is a delete or force_delete that is not refused (it may be moved to
quarantine or escalated instead), now or after some time. What is taken for
granted about time, and no more:

* ages grow, and recent deletes of a project become old;
* the cell's database comes back: without it nobody can do anything;
* the owner does what the rules allow him and what Nova does at once, in its
  database alone: unlock, and change tags and metadata.

A task may hang for ever, a host may stay away, and an operation of the
hypervisor may fail: none of them is a way out.
"""

from __future__ import annotations

from collections.abc import Iterator

from state_policy.engine.analysis import cells
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.bypass import CHANGERS
from state_policy.engine.analysis.context import Context
from state_policy.engine.analysis.finding import Finding
from state_policy.engine.analysis.outcome import vary
from state_policy.engine.facts import CALLER
from state_policy.engine.literal import Change
from state_policy.engine.states import VM_STATES

_EXITS = ("delete", "force_delete")
_OWN_ROLES = ("member", "reader")
_GONE = dd.ROW << (dd.WIDTH * VM_STATES.index("deleted"))


def ways_out(context: Context) -> Iterator[Finding]:
    """Find the states that a server's owner cannot get rid of it in."""
    make = context.make
    free = _reached(context)
    stuck = make.both(make.invert(free), dd.FULL ^ _GONE)
    if stuck == 0:
        return
    lifted = free
    for index, axis in enumerate(context.space.axes):
        if axis.change is Change.FIXED and axis.fact != CALLER:
            lifted = make.exists(lifted, index)
    hard = make.without(stuck, lifted)
    if hard != 0:
        yield context.finding(
            "SP004",
            _culprit(context, hard),
            f"leaves its owner no way out in {_where(context, hard)}: delete "
            "and force_delete stay refused however old the server gets",
        )
    soft = make.without(stuck, hard)
    if soft != 0:
        yield context.finding(
            "SP010",
            _culprit(context, soft),
            f"protects without a bound, as in {context.example(soft)}: "
            "neither time nor its owner's own action lifts it",
        )


def _where(context: Context, stuck: dd.Diagram) -> str:
    """Return the states, or a few and one example of the facts."""
    regions, bits = next(dd.paths(stuck))
    text = cells.states(bits)
    if len(text) > 120:
        text = context.example(stuck)
    else:
        words = cells.words(context.space, regions)
        text = cells.qualified(text, words)
    return text


def _culprit(context: Context, stuck: dd.Diagram) -> str:
    """Return the rule to name: what refuses there, else the brake."""
    found = context.analysis.outcomes["delete"]
    refused = settle(context, found.refused)
    may = context.stated(found.rules.may)
    if may and context.make.both(refused, stuck) != 0:
        return may
    return context.stated(found.rules.brake) or may or "server:delete"


def _reached(context: Context) -> dd.Diagram:
    """Return where an owner gets rid of a server, now or later."""
    make, space = context.make, context.space
    free: dd.Diagram = 0
    for name in _EXITS:
        found = context.analysis.outcomes[name]
        passes = make.without(
            make.invert(found.refused), found.suffixes["brake"]
        )
        free = make.either(free, settle(context, passes))
    windows = [
        i for i, a in enumerate(space.axes) if a.fact.startswith("project.")
    ]
    ages = [i for i, axis in enumerate(space.axes) if axis.ages]
    while True:
        before = free
        free = vary(space, free, windows)
        # A running action may hang: its age does not end.
        free = vary(space, free, ages, ends=False)
        free = _moved(context, free)
        if free == before:
            return free


def settle(context: Context, diagram: dd.Diagram) -> dd.Diagram:
    """Return a diagram for the server's owner, an ordinary user.

    He has the roles member and reader and no other, and is in the server's
    project and its user. The cell's database answers.
    """
    for index, axis in enumerate(context.space.axes):
        if axis.fact == CALLER:
            diagram = context.make.choose(diagram, index, _own(axis.part))
        elif axis.fact == "server.cell_up":
            for region, value in enumerate(axis.regions):
                if value.value is True:
                    diagram = context.make.choose(diagram, index, region)
    return diagram


def _own(part: str) -> int:
    kind, _, match = part.partition(":")
    if kind == "role":
        return int(match in _OWN_ROLES)
    return int("%(" in match and not kind.startswith("service"))


def _moved(context: Context, free: dd.Diagram) -> dd.Diagram:
    """Return from where the owner gets there by what Nova does at once."""
    make = context.make
    for index, axis in enumerate(context.space.axes):
        if axis.fact == "server.locked":
            may = _allowed(context, ("unlock",))
            for region, value in enumerate(axis.regions):
                if value.value is False:
                    opened = make.choose(free, index, region)
                    free = make.either(free, make.both(may, opened))
        elif axis.fact in CHANGERS and axis.part:
            for there, names in enumerate(CHANGERS[axis.fact]):
                may = _allowed(context, names)
                # The operations of the first add a name, of the second
                # remove it.
                seen = make.node(
                    index, (0, dd.FULL) if there else (dd.FULL, 0)
                )
                opened = make.choose(free, index, 1 - there)
                free = make.either(
                    free, make.both(seen, make.both(may, opened))
                )
    return free


def _allowed(context: Context, names: tuple[str, ...]) -> dd.Diagram:
    """Return where the owner may do at least one of some operations."""
    make = context.make
    return make.union(
        [
            settle(
                context,
                make.invert(context.analysis.outcomes[name].refused),
            )
            for name in names
        ]
    )
