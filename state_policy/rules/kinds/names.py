# SPDX-License-Identifier: Apache-2.0
"""Kinds whose fact is a name, a set of names, or yes or no."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar

from state_policy.engine.facts import Part
from state_policy.engine.literal import Literal
from state_policy.rules.faults import shown
from state_policy.rules.kinds import matches
from state_policy.rules.kinds.base import Kind

#: A name that no rule names: it stands for every other one. Rules cannot
#: write it, since a parenthesis is percent-encoded there.
OTHER = "(another)"


class Choice(Kind):
    """One name: ``server.host:a,b`` is true for either.

    The value is a str, None where there is none, or a set of str where one
    thing has several names (an id and a name).
    """

    #: Every name there is, the likeliest first; empty where any may be.
    values: ClassVar[tuple[str, ...]] = ()
    #: Whether there can be no value, asked for by ``none``.
    absent: ClassVar[bool] = False
    #: What the names are, for error texts.
    noun: ClassVar[str] = "value"

    @staticmethod
    def impossible(value: str) -> str:
        """Return why nothing ever has this name, or nothing."""
        return ""

    def compile(self) -> Literal:
        """Return the literal that is true for each name given."""
        wanted = frozenset(
            self._value(word) for word in matches.alternatives(self.match)
        )

        def test(value: Any) -> bool | None:
            if value is None or isinstance(value, str):
                return value in wanted
            if isinstance(value, Collection):
                return not wanted.isdisjoint(value)
            return None

        return self.literal_for(
            test,
            self._samples(wanted),
            domain=(*((None,) if self.absent else ()), *self.values),
            whole=True,
        )

    def _value(self, word: str) -> str | None:
        if word == matches.NONE:
            if not self.absent:
                raise ValueError(f"`none`: there always is a {self.noun}")
            return None
        if self.values:
            value = matches.decode(word)
            return matches.known(value, self.values, self.noun)
        if word.lower() == matches.ANY:
            raise ValueError(self._no_any())
        return _possible(word, self.impossible)

    def _no_any(self) -> str:
        name = f"as a name `any` is written `{matches.encoded(matches.ANY)}`"
        if self.absent:
            return f"for any value write `not {self.kind}:none`; {name}"
        return f"`any`: there always is a {self.noun}; {name}"

    def _samples(self, wanted: Collection[str | None]) -> list[str | None]:
        samples = sorted(wanted, key=str)
        if self.absent and None not in samples:
            samples.append(None)
        others = self.values or (OTHER,)
        samples += [other for other in others if other not in wanted][:1]
        return samples


class Members(Kind):
    """A set of names: ``server.tag:a,b`` is true where either is in it.

    ``any`` is true where the set has a member, ``none`` where it has none.
    The value is a frozenset of str, or None for the empty set.
    """

    #: Every name there is; empty where any may be.
    values: ClassVar[tuple[str, ...]] = ()
    #: What the names are, for error texts.
    noun: ClassVar[str] = "value"

    def compile(self) -> Literal:
        """Return the literal that is true for each member given."""
        words = matches.alternatives(self.match)
        some, empty = matches.ANY in words, matches.NONE in words
        wanted = frozenset(
            self.member(word)
            for word in words
            if word not in (matches.ANY, matches.NONE)
        )

        def test(value: Any) -> bool | None:
            if value is None:
                return empty
            if isinstance(value, Part):
                return _in_part(value, wanted, some, empty)
            if isinstance(value, str) or not isinstance(value, Collection):
                return None
            if not value:
                return empty
            return some or not wanted.isdisjoint(value)

        return self.literal_for(
            test,
            self._samples(wanted),
            names=wanted.union(self.values),
        )

    @staticmethod
    def impossible(value: str) -> str:
        """Return why this is never in the set, or nothing."""
        return ""

    def member(self, word: str) -> str:
        """Return the member that a word asks for."""
        if self.values:
            value = matches.decode(word)
            return matches.known(value, self.values, self.noun)
        return _possible(word, self.impossible)

    def _samples(self, wanted: Iterable[str]) -> list[frozenset[str] | None]:
        named = sorted(wanted)
        other = next(
            (value for value in self.values if value not in named), OTHER
        )
        return [None, *(frozenset({name}) for name in (*named, other))]


def _possible(word: str, impossible: Callable[[str], str]) -> str:
    value = matches.name(word)
    reason = impossible(value)
    if reason:
        raise ValueError(f"{shown(word)} {reason}")
    return value


def _in_part(
    part: Part, wanted: frozenset[str], some: bool, empty: bool
) -> bool | None:
    """Judge a set of which a part is known; None where that is too little."""
    if not part:
        return empty
    if some or part.has & wanted:
        return True
    return None if part.others and wanted - part.lacks else False


class Flag(Kind):
    """Yes or no: ``server.locked:true``. The value is a bool or None."""

    #: Whether there can be no value, asked for by ``none``.
    absent: ClassVar[bool] = False

    def compile(self) -> Literal:
        """Return the literal that is true for each value given."""
        known = {"true": True, "false": False}
        if self.absent:
            known[matches.NONE] = None  # type: ignore[assignment]
        wanted = [
            known[matches.known(word, tuple(known), "value")]
            for word in matches.alternatives(self.match)
        ]

        def test(value: Any) -> bool | None:
            if value is None or isinstance(value, bool):
                return value in wanted
            return None

        return self.literal_for(test, known.values())
