# SPDX-License-Identifier: Apache-2.0
"""Ways round a guard: the other operation, and facts its caller can set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.context import Context, listed
from state_policy.engine.analysis.finding import Finding
from state_policy.engine.analysis.outcome import Outcomes
from state_policy.engine.states import VM_STATES

#: Facts that users can change: the operations that add a name to them, and
#: those that remove one. A rebuild may replace the metadata.
CHANGERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = (
    MappingProxyType(
        {
            "server.tag": (
                ("add_tag", "replace_tags"),
                ("delete_tag", "delete_tags", "replace_tags"),
            ),
            "server.metadata": (
                (
                    "create_metadata",
                    "replace_metadata",
                    "update_metadata",
                    "rebuild",
                ),
                (
                    "delete_metadata",
                    "create_metadata",
                    "replace_metadata",
                    "update_metadata",
                    "rebuild",
                ),
            ),
        }
    )
)


def _idle(*vm_states: str) -> int:
    """Return the states of these vm_states in which no task runs."""
    return sum(dd.bit(VM_STATES.index(name), 0) for name in vm_states)


#: Operations that destroy what delete destroys, and the states that Nova
#: takes them in (nova.compute.api, 34.0.0: check_instance_state).
TWINS: Mapping[str, int] = MappingProxyType(
    {
        "force_delete": dd.FULL,
        "rebuild": _idle("active", "stopped", "error"),
    }
)


def twins(context: Context) -> Iterator[Finding]:
    """Find where delete is refused and what does as much harm is not."""
    make = context.make
    delete = context.analysis.outcomes["delete"]
    guard = context.stated(delete.rules.may)
    if guard is None:
        return
    for name, native in TWINS.items():
        found = context.analysis.outcomes[name]
        hole = make.without(make.both(delete.refused, native), found.refused)
        if hole != 0:
            yield context.finding(
                "SP006",
                guard,
                f"refuses delete but not {name}, as in "
                f"{context.example(hole)}",
            )


def changeable(context: Context) -> Iterator[Finding]:
    """Find rules that rest on a tag or metadata that callers may change."""
    axes = [
        (index, axis)
        for index, axis in enumerate(context.space.axes)
        if axis.fact in CHANGERS and axis.part
    ]
    for outcomes in context.analysis.outcomes.values():
        for index, axis in axes:
            yield from _changeable(context, outcomes, index, axis.fact)


def _changeable(
    context: Context, outcomes: Outcomes, index: int, fact: str
) -> Iterator[Finding]:
    make = context.make
    diagrams = [make.invert(outcomes.refused), *outcomes.suffixes.values()]
    for rule, on in zip(outcomes.rules.all, diagrams, strict=True):
        stated = context.stated(rule)
        if stated is None or rule is outcomes.rules.wait:
            # A wait alone lets nothing pass and does nothing.
            continue
        if index not in dd.axes_of(on):
            continue
        names = _changers(context, index, fact, on, rule.name)
        if names:
            axis = context.space.axes[index]
            yield context.finding(
                "SP007",
                stated,
                f"rests on `{axis.fact}:{axis.part}`, which the same caller "
                f"can change by {listed(sorted(names))}",
            )


def _changers(
    context: Context, index: int, fact: str, on: dd.Diagram, rule: str
) -> set[str]:
    """Return the operations by which a caller changes the outcome.

    For the rule itself only changes that lift a refusal count; a suffix may
    be unwelcome or welcome.
    """
    make = context.make
    found = set()
    for there, names in enumerate(CHANGERS[fact]):
        before = make.choose(on, index, there)
        after = make.choose(on, index, 1 - there)
        gained = make.without(after, before)
        if rule.count(":") > 1:
            gained = make.either(gained, make.without(before, after))
        for name in names:
            refused = context.analysis.outcomes[name].refused
            may = make.invert(make.choose(refused, index, there))
            if make.both(gained, may) != 0:
                found.add(name)
    return found
