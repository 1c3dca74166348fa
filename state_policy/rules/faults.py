# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a rule set, in the words its author reads."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


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


def nearest(word: str, words: Iterable[str]) -> str:
    """Return `` (did you mean `x`?)`` for the word most like it, or nothing.

    :param word: what was written
    :param words: what could have been meant
    """
    by_case = {known.lower(): known for known in words}
    found = difflib.get_close_matches(word.lower(), by_case, 1, 0.7)
    return f" (did you mean `{by_case[found[0]]}`?)" if found else ""


def one_line(text: str) -> str:
    """Return text without anything that a terminal or a log could obey."""
    return "".join(c if c.isprintable() else "?" for c in text)


def shown(text: str, width: int = 60) -> str:
    """Return text for an error line: one line, bounded, in backticks."""
    line = one_line(text)
    if len(line) > width:
        line = line[: width - 3] + "..."
    return f"`{line}`"
