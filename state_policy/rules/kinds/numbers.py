# SPDX-License-Identifier: Apache-2.0
"""Kinds whose fact is a span of time or a number."""

from __future__ import annotations

from typing import Any, ClassVar

from state_policy.engine.facts import Age
from state_policy.engine.literal import Literal
from state_policy.rules.faults import shown
from state_policy.rules.kinds import matches
from state_policy.rules.kinds.base import Kind


class Span(Kind):
    """How long something has been: ``server.age:>=10m``.

    The value is an ``Age``; None where nothing has been, for which no
    comparison is true. A plain number counts as exact seconds.
    """

    #: Whether there can be no value, asked for by ``none``.
    absent: ClassVar[bool] = False

    def compile(self) -> Literal:
        """Return the literal that compares with the span given."""
        if self.absent and self.match == matches.NONE:
            return self.literal_for(
                _is_none, [None, Age(0)], ages=True, numeric=True
            )
        sign, text = _comparison(self.match)
        limit = matches.duration(text)
        grows = sign in (">=", ">")
        compare = matches.COMPARISONS[sign]

        def test(value: Any) -> bool | None:
            if value is None:
                return False
            exact, seconds = True, value
            if isinstance(value, Age):
                exact, seconds = value.exact, value.seconds
            if isinstance(seconds, bool) or not isinstance(
                seconds, int | float
            ):
                return None
            found = compare(seconds, limit)
            # An age that is at least this can still be any greater one: it
            # proves what every greater one has too.
            return found if exact or found is grows else None

        return self.literal_for(
            test,
            [
                *([None] * self.absent),
                *(Age(seconds) for seconds in _around(sign, limit)),
            ],
            ages=True,
            numeric=True,
        )


class Count(Kind):
    """How many of something: ``cloud.stuck:>50``. The value is an int."""

    #: The comparison may stand behind a window of time and a colon.
    windowed: ClassVar[bool] = False

    def compile(self) -> Literal:
        """Return the literal that compares with the number given."""
        fact, match = self.kind, self.match
        if self.windowed:
            window, match = _window(self.match)
            fact = f"{self.kind}:{window}"
        sign, text = _comparison(match)
        limit = matches.count(text)
        compare = matches.COMPARISONS[sign]

        def test(value: Any) -> bool | None:
            if isinstance(value, bool) or not isinstance(value, int):
                return None
            return compare(value, limit)

        return self.literal_for(
            test, _around(sign, limit), fact=fact, numeric=True
        )


def _is_none(value: Any) -> bool:
    return value is None


def _comparison(match: str) -> tuple[str, str]:
    if "," in match:
        raise ValueError(
            f"{shown(match)} has a comma: a comparison takes one number;"
            " join two comparisons with `and`"
        )
    return matches.comparison(match)


def _window(match: str) -> tuple[str, str]:
    window, colon, rest = match.partition(":")
    if not colon:
        raise ValueError(
            f"{shown(match)} lacks a window or a comparison, as in `10m:>50`"
        )
    if matches.duration(window) == 0:
        raise ValueError("a window of no time counts nothing")
    return window, rest


def _around(sign: str, limit: int) -> list[int]:
    """Return a value on each side of a threshold."""
    if sign in (">=", "<"):
        return [limit - 1, limit] if limit else [limit]
    return [limit, limit + 1]
