# SPDX-License-Identifier: Apache-2.0
"""One condition of a rule, compiled: a fact and a test of its value."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Change(enum.Enum):
    """How the value of a fact can become another.

    FIXED facts do not change for the caller, MOVABLE ones by an action of the
    server's owner, PASSING ones by waiting.
    """

    FIXED = "fixed"
    MOVABLE = "movable"
    PASSING = "passing"


@dataclass(frozen=True, slots=True)
class Literal:
    """A condition that looks at exactly one fact.

    :ivar kind: ``server.vm_state``
    :ivar match: the rule author's text behind the kind
    :ivar fact: key of the fact it looks at; equal to the kind, or with the
        kind's parameter (``project.deletes:10m``)
    :ivar change: how the fact can change
    :ivar test: from the fact's value (None where there is none) to True,
        False, or None for undecided; must not raise
    :ivar samples: values of the fact that tell every outcome of this test
        apart: for a set of names each name and one other, for a threshold a
        value on each side. Facts of several literals are tried with the
        union of their samples. Includes None where "no value" is possible
    :ivar domain: every value the fact can have, the likeliest first, where
        they can be listed. Where several literals look at one fact, the first
        that none of them names is tried too and stands for all the others
    :ivar names: members of a set that this text names. Of the set a rule
        looks at no others are written to logs. None: it names none
    :ivar whole: True where a set may be written down as it is, because its
        members are names of one thing
    :ivar numeric: True for ages and counts, whose samples lie on a line
    :ivar ages: True where the value is an Age, which only grows
    """

    kind: str
    match: str
    fact: str
    change: Change
    test: Callable[[Any], bool | None] = field(compare=False, repr=False)
    samples: tuple[Any, ...] = field(compare=False, repr=False, default=())
    ages: bool = False
    numeric: bool = False
    domain: tuple[Any, ...] = field(compare=False, repr=False, default=())
    names: frozenset[str] | None = field(
        compare=False, repr=False, default=None
    )
    whole: bool = field(compare=False, repr=False, default=False)

    def __str__(self) -> str:
        return f"{self.kind}:{self.match}"
