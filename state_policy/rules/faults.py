# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a rule set, in the words its author reads."""

from __future__ import annotations

import contextlib
import contextvars
import difflib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: So many words are compared with those that could have been meant, while
#: ``few_hints``: who has more to correct is not helped by the next one.
MAX_HINTS = 50

_hints: contextvars.ContextVar[int | None] = contextvars.ContextVar(
    "hints", default=None
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
    """Let ``nearest`` find ``MAX_HINTS`` times, and nothing after that.

    A comparison with every name takes milliseconds, and a file can hold tens
    of thousands of wrong ones.
    """
    token = _hints.set(MAX_HINTS)
    try:
        yield
    finally:
        _hints.reset(token)


def nearest(word: str, words: Iterable[str]) -> str:
    """Return `` (did you mean `x`?)`` for the word most like it, or nothing.

    :param word: what was written
    :param words: what could have been meant
    """
    left = _hints.get()
    if left is not None:
        if left == 0:
            return ""
        _hints.set(left - 1)
    by_case = {known.lower(): known for known in words}
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
