# SPDX-License-Identifier: Apache-2.0
"""Reading what stands behind a kind: words, flags, numbers and spans.

Every function raises ValueError with the reason, without file and line.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from urllib.parse import unquote

from state_policy.rules.faults import nearest, shown

#: How a number is compared.
Compare = Callable[[float, float], bool]

#: The comparisons, the longer ones first.
COMPARISONS: dict[str, Compare] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}

#: Seconds of each unit of time.
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

#: Written where there is no value, and for any value at all.
NONE, ANY = "none", "any"

_DIGITS = 9
#: What other languages write for "not", "any" and "or".
_SIGN = re.compile(r"^[!=<>~]|[*|]|&&")
_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}")


def alternatives(match: str) -> tuple[str, ...]:
    """Split a match at its commas; each part is one of the alternatives."""
    if not match:
        raise ValueError("nothing stands behind the colon")
    words = tuple(match.split(","))
    if not all(words):
        raise ValueError(
            f"{shown(match)} has an empty value beside a comma;"
            " no blank may follow a comma"
        )
    return words


def decode(word: str) -> str:
    """Return the value that a word stands for.

    :param word: a blank, ``)``, a comma or a quote in it is percent-encoded
    """
    if '"' in word or "'" in word:
        raise ValueError(
            f"quotes do not help in {shown(word)}: write a blank as %20,"
            " a quote as %22 or %27"
        )
    if "%" in _ENCODED.sub("", word):
        raise ValueError(f"a percent sign in {shown(word)} is written %25")
    try:
        value = unquote(word, errors="strict")
    except UnicodeDecodeError:
        raise ValueError(f"{shown(word)} does not encode UTF-8") from None
    if "\x00" in value:
        raise ValueError(f"{shown(word)} holds a NUL character")
    return value


def name(word: str) -> str:
    """Return the name that a word stands for.

    :raises ValueError: where it looks like ``none`` or ``any`` in other
        letters, a pattern or a comparison
    """
    lowered = word.lower()
    if lowered in (NONE, ANY):
        raise ValueError(
            f"{shown(word)} is written {shown(lowered)}, and as a name"
            f" {shown(encoded(word))}"
        )
    return plain(word)


def plain(word: str) -> str:
    """Return the value that a word stands for, which is compared as it is.

    :raises ValueError: where it looks like a pattern or a comparison
    """
    odd = sign(word)
    if odd:
        raise ValueError(
            f"{shown(word)}: a value is compared as it is, without patterns"
            f" and signs; a `{odd}` of its own is written"
            f" {encoded(odd)[:3]}"
        )
    return decode(word)


def sign(word: str) -> str:
    """Return what of a word looks like a pattern or a comparison, if any."""
    found = _SIGN.search(word)
    return found.group() if found else ""


def encoded(word: str) -> str:
    """Return a word with its first letter percent-encoded."""
    return f"%{ord(word[0]):02X}{word[1:]}"


def known(word: str, words: Sequence[str], what: str) -> str:
    """Return the word if it is one of ``words``.

    :param what: what the words are, for the reason
    """
    if word in words:
        return word
    hint = nearest(word, words)
    if not hint and len(words) <= 6:
        hint = ": one of " + ", ".join(words)
    raise ValueError(f"unknown {what} {shown(word)}{hint}")


def comparison(match: str) -> tuple[str, str]:
    """Split a match into its comparison and what it compares with."""
    for sign in COMPARISONS:
        if match.startswith(sign):
            return sign, match[len(sign) :]
    if not match:
        raise ValueError("nothing stands behind the colon")
    if match.startswith("="):
        raise ValueError(
            f"{shown(match)} starts with `=`; comparisons are >= > <= <"
        )
    raise ValueError(
        f"{shown(match)} lacks a comparison: one of >= > <= < comes first"
    )


def duration(text: str) -> int:
    """Return the seconds of a span of time such as ``90s`` or ``14d``."""
    unit = text[-1:]
    if text.isascii() and text.isdigit():
        raise ValueError(
            f"{shown(text)} lacks a unit: one of s, m, h, d, as in"
            f" {shown(text + 'm')}"
        )
    if unit.isalpha() and text[:-1].isdigit() and unit not in UNITS:
        raise ValueError(
            f"unknown unit in {shown(text)}: one of s, m, h, d comes last"
        )
    if unit not in UNITS:
        raise ValueError(
            f"{shown(text)} is no span of time: a whole number and one of"
            " s, m, h, d, as in `10m`"
        )
    return _number(text[:-1], text) * UNITS[unit]


def count(text: str) -> int:
    """Return the number that a text of digits is."""
    return _number(text, text)


def _number(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{shown(text)} is no whole number")
    if len(digits) > _DIGITS:
        raise ValueError(f"{shown(text)} is too large")
    return int(digits)
