# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a rule set, in the words its author reads."""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import itertools
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: So many comparisons of two words ``nearest`` makes in all, while
#: ``few_hints``: who has more to correct is not helped by the next hint.
MAX_COMPARED = 20_000

#: Letters of the longest word that is compared: the time for two words grows
#: with the product of their lengths.
_LONGEST = 100

_left: contextvars.ContextVar[int | None] = contextvars.ContextVar(
    "comparisons", default=None
)


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One reason why a rule set is refused.

    :ivar file: path of the file, or what else is at fault (a plugin)
    :ivar line: line in the file, from 1; 0 where it is the file as a whole
    :ivar reason: one line: what is wrong and what to do
    """

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return one_line(f"{place}: {self.reason}")


class RulesError(Exception):
    """A rule set is refused.

    :ivar faults: every fault of every file, in reading order
    """

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


@contextlib.contextmanager
def few_hints() -> Iterator[None]:
    """Let ``nearest`` make ``MAX_COMPARED`` comparisons, and no more.

    Each takes some ten microseconds, and a file can hold tens of thousands of
    wrong names beside as many that could have been meant.
    """
    token = _left.set(MAX_COMPARED)
    try:
        yield
    finally:
        _left.reset(token)


def nearest(word: str, words: Iterable[str]) -> str:
    """Return `` (did you mean `x`?)`` for the word most like it, or nothing.

    :param word: what was written
    :param words: what could have been meant, the likeliest first: the last
        ones may be left out while ``few_hints``
    """
    left = _left.get()
    if left == 0 or len(word) > _LONGEST:
        return ""
    by_case = {known.lower(): known for known in itertools.islice(words, left)}
    if left is not None:
        _left.set(left - len(by_case))
    found = difflib.get_close_matches(word.lower(), by_case, 1, 0.7)
    return f" (did you mean `{by_case[found[0]]}`?)" if found else ""


def invisible(text: str) -> str:
    """Return the first character that no reader of a file sees, or nothing.

    Controls, and what only formats: a space of no width, a change of the
    direction. Blanks, tabs and line breaks are not meant.
    """
    return next(
        (
            c
            for c in text
            if c not in "\t\n"
            and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")
        ),
        "",
    )


def one_line(text: str) -> str:
    """Return text without anything that a terminal or a log could obey."""
    return "".join(c if c.isprintable() else "?" for c in text)


def shown(text: str, width: int = 60) -> str:
    """Return text for an error line: one line, bounded, in backticks."""
    line = one_line(text)
    if len(line) > width:
        line = line[: width - 3] + "..."
    return f"`{line}`"
