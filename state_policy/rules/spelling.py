# SPDX-License-Identifier: Apache-2.0
"""Names that look like one of the project's, and which it was meant to be.

A rule under a name that nothing asks for does nothing. Some such names are a
helper of the author's own whose user is commented out for the time being, and
refusing it would keep every other change out; some are a name of the
project's, spelt otherwise. Only the latter are told here: more letters or
words than the project's name has make another name. That is asked of every
name of a file, so it takes the same time however many names there are.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from state_policy.engine import operations
from state_policy.rules import defaults

#: What people write for the colon, and for the underscore in a name.
_BETWEEN = re.compile(r"[\s.:/_?-]+")

#: Letters of the shortest name that is known with one letter missing, and of
#: the longest that anybody could have meant.
_LEAST, _MOST = 6, 60

#: The first words of the project's names, and what people say for them.
_FIRST = ("server", "class", "quarantine")
_SYNONYMS = ("servers", "instance", "vm", "rule")


def meant(name: str) -> str:
    """Return the project's name that this one is a spelling of, or nothing.

    Neither case nor what stands between the words makes a difference, nor
    does another word for ``server`` (``instance:delete``). A letter may be
    missing, or two may have changed places (``delte``). An operation and a
    colon begin a name of the project's, whatever comes behind it.
    """
    first, *rest = _words(name) or [""]
    known = _first(first)
    if known and rest:
        found = _behind(rest) or (known in _FIRST and _groups(rest)) or ""
        return found or _suffixed(name.partition(":")[2])
    return (
        _full().get(first + "".join(rest), "")
        or _behind([first, *rest])
        or _suffixed(name)
    )


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return [word for word in _BETWEEN.split(plain) if word]


def _letters(name: str) -> str:
    return "".join(_words(name))


def _first(word: str) -> str:
    """Return the first word of the project's that this one is, or nothing.

    Any letter of it may be wrong: what follows has to be right.
    """
    if word in _FIRST or word in _SYNONYMS:
        return word
    return next((known for known in _FIRST if _one_wrong(word, known)), "")


def _behind(words: Iterable[str]) -> str:
    """Return the rule of an operation by the words behind ``server``."""
    whole = "".join(words)
    found = _operations()
    if whole in found:
        return found[whole]
    if len(whole) > _MOST:
        return ""
    return next((found[right] for right in _near().get(whole, ())), "")


def _groups(words: Iterable[str]) -> str:
    """Return the rule of a class or of the quarantine by its last words."""
    whole = "".join(words)
    return next(
        (
            name
            for name in defaults.texts()
            if name.startswith(("class:", "quarantine:"))
            and _letters(name.partition(":")[2]) == whole
        ),
        "",
    )


def _suffixed(name: str) -> str:
    """Return the rule of the operation that stands before a colon."""
    operation, colon, _ = unicodedata.normalize("NFKC", name).partition(":")
    return _operations().get(_letters(operation), "") if colon else ""


@functools.cache
def _full() -> Mapping[str, str]:
    """Return the project's whole names by their letters."""
    groups = defaults.groups()
    return {
        _letters(name): name for name in defaults.texts() if name not in groups
    }


@functools.cache
def _operations() -> Mapping[str, str]:
    """Return the rules of the operations by how they may be written.

    A suffix that the operation lacks is among them, for who writes it means
    something by it; so is what Nova's API calls the operation.
    """
    found: dict[str, str] = {}
    for name, operation in operations.OPERATIONS.items():
        rule = f"server:{name}"
        for word in (name, operation.action or name):
            plain = word.removeprefix("os-")
            found.setdefault(_letters(word), rule)
            found.setdefault(_letters(plain), rule)
        own = operations.suffixes(name)
        for suffix in operations.suffixes("delete"):
            full = f"{rule}:{suffix}" if suffix in own else rule
            found.setdefault(_letters(name + suffix), full)
    return found


@functools.cache
def _near() -> Mapping[str, tuple[str, ...]]:
    """Return the spellings by what a slip of the pen makes of each."""
    found: dict[str, tuple[str, ...]] = {}
    for right in _operations():
        short = len(right) < _LEAST
        for wrong in {*_swapped(right), *(() if short else _shorter(right))}:
            found[wrong] = (*found.get(wrong, ()), right)
    return found


def _shorter(text: str) -> Iterator[str]:
    """Yield a text without each of its letters."""
    for place in range(len(text)):
        yield text[:place] + text[place + 1 :]


def _swapped(text: str) -> Iterator[str]:
    """Yield a text with each two neighbours exchanged."""
    for place in range(len(text) - 1):
        pair = text[place + 1] + text[place]
        yield text[:place] + pair + text[place + 2 :]


def _one_wrong(word: str, known: str) -> bool:
    """Return whether one letter is missing or wrong, or two are exchanged."""
    if len(word) != len(known):
        return word in _shorter(known)
    if word in _swapped(known):
        return True
    return sum(a != b for a, b in zip(word, known, strict=True)) == 1
