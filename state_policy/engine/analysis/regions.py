# SPDX-License-Identifier: Apache-2.0
"""Cutting one fact into the regions that conditions tell apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from state_policy.engine.facts import Age
from state_policy.engine.literal import Literal

#: Stands for any name that no rule states.
OTHER: Final = "(other)"
YES: Final = "yes"
NO: Final = "no"

#: A comparison; a window of time and a colon may stand before it.
_THRESHOLD = re.compile(r"(?:[^<>=]*:)?(>=|<=|>|<)(\S+)")
#: What is above the cut that a comparison makes.
_ABOVE = {">=": ">=", "<": ">=", ">": ">", "<=": ">"}


@dataclass(frozen=True, slots=True)
class Region:
    """Values of one fact that no condition tells apart.

    :ivar value: one of them
    :ivar label: all of them, as a rule's author would write it
    :ivar values: those that were tried
    """

    value: Any
    label: str
    values: tuple[Any, ...] = ()

    def has(self, value: Any) -> bool:
        """Return whether the value is among those that were tried."""
        return any(
            seen == value and type(seen) is type(value)
            for seen in (self.value, *self.values)
        )


def outcome(literal: Literal, value: Any) -> bool | None:
    """Return the outcome of a condition for a value; never raises."""
    test: Callable[[Any], bool | None] = literal.test
    try:
        return test(value)
    except Exception:  # noqa: BLE001
        # As in evaluation: who cannot judge has not decided.
        return None


#: Facts of one thing that has several names: each is asked about apart.
_SEVERAL_NAMES = frozenset({"server.flavor"})


def is_set(literals: Sequence[Literal]) -> bool:
    """Return whether the fact is a set of names."""
    return literals[0].fact in _SEVERAL_NAMES or any(
        isinstance(value, frozenset)
        for literal in literals
        for value in literal.samples
    )


def member_names(literals: Sequence[Literal]) -> tuple[str, ...]:
    """Return the names that conditions on a set tell apart, in order.

    A sample that no condition states stands for all other names.
    """
    found: dict[str, None] = {}
    for literal in literals:
        stated = literal.match.split(",")
        for value in literal.samples:
            names = [value] if isinstance(value, str) else value or ()
            found.update(
                (name, None) for name in sorted(names) if _stated(name, stated)
            )
    return tuple(found)


def _stated(name: str, stated: Sequence[str]) -> bool:
    return any(unquote(text) == name for text in stated)


def cut(
    literals: Sequence[Literal],
) -> tuple[list[Region], list[list[bool | None]]]:
    """Cut a fact by all conditions on it.

    :returns: the regions, and for each condition its outcome in each region
    """
    samples = dict.fromkeys(
        value for lit in literals for value in (*lit.samples, *lit.domain)
    )
    # No value is a region of its own: an age that begins is another thing
    # than one that grows.
    grouped: dict[tuple[bool, tuple[bool | None, ...]], list[Any]] = {}
    for value in _ordered(list(samples)):
        if isinstance(value, Age) and not value.exact:
            # A lower bound is knowledge about an age, not another age.
            continue
        signature = tuple(outcome(literal, value) for literal in literals)
        grouped.setdefault((value is None, signature), []).append(value)
    cuts = _cuts(literals)
    regions = [
        Region(values[0], _label(values, literals, cuts), tuple(values))
        for values in grouped.values()
    ]
    signatures = [signature for _, signature in grouped]
    return regions, [list(column) for column in zip(*signatures, strict=True)]


def _ordered(values: list[Any]) -> list[Any]:
    """Return no value first, then numbers and ages growing."""

    def order(value: Any) -> tuple[int, float]:
        if value is None:
            return 0, 0.0
        if isinstance(value, Age):
            return 1, value.seconds
        if isinstance(value, int | float) and not isinstance(value, bool):
            return 1, float(value)
        return 2, 0.0

    return sorted(values, key=order)


def _cuts(literals: Sequence[Literal]) -> dict[str, Literal]:
    """Return the distinct thresholds, as ``>=60m``, and a condition each."""
    found: dict[str, Literal] = {}
    for literal in literals:
        parsed = _THRESHOLD.fullmatch(literal.match)
        if parsed:
            found.setdefault(_ABOVE[parsed[1]] + parsed[2], literal)
    return found


def _label(
    values: Sequence[Any],
    literals: Sequence[Literal],
    cuts: dict[str, Literal],
) -> str:
    first = values[0]
    if first is None and len(values) == 1:
        return "none"
    if not literals[0].numeric and not literals[0].ages:
        return ",".join(_plain(value, literals) for value in values)
    above, below = [], []
    for text, literal in cuts.items():
        holds = outcome(literal, first)
        if "<" in literal.match:
            holds = None if holds is None else not holds
        if holds is True:
            above.append(text)
        elif holds is False:
            below.append(_other_side(text))
    bounds = []
    if above:
        bounds.append(max(above, key=_size))
    if below:
        bounds.append(min(below, key=_size))
    return " and ".join(bounds) or _plain(first, literals)


def _other_side(text: str) -> str:
    return "<" + text[2:] if text.startswith(">=") else "<=" + text[1:]


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _size(text: str) -> tuple[float, bool]:
    """Return the order of bounds: the number, then what excludes more."""
    number = text.lstrip("<>=")
    try:
        value = float(number.rstrip("smhd")) * _UNITS.get(number[-1:], 1)
    except ValueError:
        value = 0.0
    # Of `>=1h` and `>1h` the latter is the greater cut, of `<1h` and
    # `<=1h` the latter too.
    return value, text.startswith("<=") or not text.startswith(("<", ">="))


def _plain(value: Any, literals: Sequence[Literal]) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Age):
        return f"{value.seconds:g}s"
    stated = [text for lit in literals for text in lit.match.split(",")]
    if isinstance(value, str) and not _stated(value, stated):
        return OTHER
    return str(value)
