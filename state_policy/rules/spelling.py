# SPDX-License-Identifier: Apache-2.0
"""Names that look like one of the project's, and which it was meant to be.

A rule under a name that nothing asks for does nothing, so such a name must
be told from a helper of the author's own. That is asked of every name of a
file, so it takes the same time however many names there are to compare with.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from state_policy.engine import operations
from state_policy.rules import defaults

#: What people write for the colon, and for the underscore in a name.
_BETWEEN = re.compile(r"[\s.:/_-]+")

#: Letters of a word that one wrong letter does not make another word, and of
#: the longest that anybody could have meant.
_LEAST, _MOST = 4, 60

#: Words that are nothing but a part of the project's names.
_PARTS = {
    "server": "server:delete",
    "class": "class:any",
    "quarantine": "server:delete:quarantine",
}


def meant(name: str) -> str:
    """Return the project's name that this one looks like, or nothing.

    Neither case nor what stands between the words makes a difference, nor
    does a wrong letter in a word, nor a first or last word too many
    (``instance:delete``, ``delete_server``).
    """
    words = _words(name)
    right = [_corrected(word, _vocabulary()) for word in words]
    whole = "".join(words)
    return (
        _PARTS.get(whole, "")
        or _known(words)
        or _known(right)
        or _spellings().get(_corrected(whole, _near()), "")
        or next(filter(None, map(_known, (right[1:], right[:-1]))), "")
    )


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return [word for word in _BETWEEN.split(plain) if word]


def _known(words: Iterable[str]) -> str:
    return _spellings().get("".join(words), "")


@functools.cache
def _spellings() -> Mapping[str, str]:
    """Return the project's names by how they may be written, letters only.

    A suffix that the operation lacks is among them, for who writes it means
    something by it; so is what Nova's API calls the operation.
    """
    groups = defaults.groups()
    known = [name for name in defaults.texts() if name not in groups]
    found: list[tuple[str, str]] = [(name, name) for name in known]
    found += [(name.partition(":")[2], name) for name in known]
    suffixes = operations.suffixes("delete")
    found += [(suffix, f"server:delete:{suffix}") for suffix in suffixes]
    for name, operation in operations.OPERATIONS.items():
        rule = f"server:{name}"
        found += [(f"{name}:{suffix}", rule) for suffix in suffixes]
        found += [(f"{rule}:{suffix}", rule) for suffix in suffixes]
        # `reboot` is no operation, `reboot_soft` is.
        found += [(operation.action or name, rule), (name.split("_")[0], rule)]
    spellings: dict[str, str] = {}
    for spelt, name in found:
        spellings.setdefault("".join(_words(spelt)), name)
    return spellings


@functools.cache
def _near() -> Mapping[str, tuple[str, ...]]:
    return _index(_spellings())


@functools.cache
def _vocabulary() -> Mapping[str, tuple[str, ...]]:
    """Return the single words of the project's names, to be looked up."""
    return _index(
        dict.fromkeys(
            itertools.chain.from_iterable(map(_words, defaults.texts()))
        )
    )


def _index(texts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return texts by what is left of each without one letter."""
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        for rest in {text, *_shortened(text)}:
            found[rest] = (*found.get(rest, ()), text)
    return found


def _corrected(word: str, index: Mapping[str, tuple[str, ...]]) -> str:
    """Return the text of an index that a word differs from by a letter.

    Two such texts have what is left without that letter in common, also
    where two letters changed places.

    :returns: the word itself where there is none
    """
    if word in index.get(word, ()):
        return word
    near = (
        known
        for rest in (word, *_shortened(word))
        for known in index.get(rest, ())
        if len(known) >= _LEAST and _close(word, known)
    )
    return next(near, word)


def _shortened(text: str) -> Iterator[str]:
    if _LEAST <= len(text) <= _MOST:
        for place in range(len(text)):
            yield text[:place] + text[place + 1 :]


def _close(word: str, known: str) -> bool:
    """Return whether one letter is wrong, missing, too many or misplaced."""
    if len(word) != len(known):
        return True  # they met without one letter: it is that letter
    wrong = [
        i
        for i, pair in enumerate(zip(word, known, strict=True))
        if pair[0] != pair[1]
    ]
    return len(wrong) == 1 or (
        len(wrong) == 2
        and sorted(word[i] for i in wrong) == sorted(known[i] for i in wrong)
    )
