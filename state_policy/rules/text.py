# SPDX-License-Identifier: Apache-2.0
"""Reading the text of one rule, and saying what is wrong with it.

oslo.policy turns text it cannot read into "never" and a log line. So a text
is judged here first, word by word; oslo.policy's public parser then makes
the tree, and must have understood the same conditions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from oslo_policy import policy

from state_policy.rules.faults import invisible, shown

#: Bounds of one rule; what is larger was not written by a person.
MAX_LENGTH, MAX_LEVELS = 65536, 50

#: Words that others use for what is a word of its own here.
_OPERATORS = {"&&": "and", "||": "or", "&": "and", "|": "or", "~": "not"}
_CONSTANTS = ("@", "!")
_WORD = re.compile(r"\S+")

#: The one form in which parentheses belong to a match.
_TARGET = re.compile(r"%\([^()\s]*\)s")

#: Says why a condition is no good, by raising ValueError.
Judge = Callable[[str, str], None]


@dataclass
class Reading:
    """What a text was found to be.

    :ivar words: its words, parentheses split off
    :ivar conditions: its conditions, ``@`` and ``!`` among them, in order
    :ivar levels: how deep it is nested, 1 for a condition alone
    :ivar reasons: what is wrong with it
    """

    words: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    levels: int = 1
    reasons: list[str] = field(default_factory=list)

    @property
    def references(self) -> list[str]:
        """Return the names of the rules it refers to."""
        return [
            condition.partition(":")[2]
            for condition in self.conditions
            if condition.startswith("rule:")
            and condition != "rule:"
            and not _parenthesis(condition)
        ]


def read(text: str, judge: Judge) -> Reading:
    """Judge the text of a rule.

    :param judge: called with kind and match of each condition
    """
    found = Reading()
    if not text.strip():
        found.reasons.append(
            'an empty rule allows everything to oslo.policy: write "@" or "!"'
        )
    elif len(text) > MAX_LENGTH:
        found.reasons.append(
            f"the rule is longer than {MAX_LENGTH} characters"
        )
    elif invisible(text):
        found.reasons.append(_unseen(invisible(text)))
    else:
        found.words = list(_words(text))
        order = _judge_order(found)
        reasons = [_judge_condition(c, judge) for c in found.conditions]
        # A condition that is cut in two makes the next word look wrong too.
        if order and not (reasons and reasons[-1]):
            reasons.append(order)
        found.reasons += dict.fromkeys(filter(None, reasons))
    return found


def _unseen(character: str) -> str:
    return (
        f"the rule holds U+{ord(character):04X}, which nobody sees; in a"
        f" value it is written {quote(character)}"
    )


def _words(text: str) -> Iterator[str]:
    """Split as oslo.policy does: parentheses count at a word's ends only."""
    for word in _WORD.findall(text):
        core = word.lstrip("(")
        yield from "(" * (len(word) - len(core))
        end = core.rstrip(")")
        if end:
            yield end
        yield from ")" * (len(core) - len(end))


def _judge_order(found: Reading) -> str:
    """Follow the grammar and note the conditions.

    :returns: why the first word out of place is, or nothing
    """
    # Each open parenthesis with the negations right before it.
    opened: list[int] = []
    negations = 0
    operand = True
    for word in found.words:
        lowered = word.lower()
        if lowered in ("and", "or") or word == ")":
            if operand:
                return f"a condition is missing before `{word}`"
            operand = word != ")"
            if not operand and not opened:
                return "a `)` has no `(`"
            if not operand:
                opened.pop()
            continue
        if not operand:
            return _missing_operator(word)
        if word == "(":
            opened.append(negations)
            negations = 0
        elif lowered == "not":
            negations += 1
        else:
            negations, operand = 0, False
            found.conditions.append(word)
        level = len(opened) + sum(opened) + negations + 1
        found.levels = max(found.levels, level)
        if level > MAX_LEVELS:
            return "the rule is nested too deeply"
    if operand:
        return f"a condition is missing behind `{found.words[-1]}`"
    return "a `(` has no `)`" if opened else ""


def _missing_operator(word: str) -> str:
    if word in _OPERATORS:
        return f"`{word}` is written `{_OPERATORS[word]}`"
    reason = f"`and` or `or` is missing before {shown(word)}"
    if ":" not in word and word not in ("(", *_CONSTANTS):
        reason += "; a blank inside a value is written %20"
    return reason


def _judge_condition(word: str, judge: Judge) -> str:
    if word in _CONSTANTS:
        return ""
    if word[0] in "\"'" and word[-1] in "\"'":
        return f"{shown(word)}: a text in quotes is no condition"
    kind, colon, match = word.partition(":")
    if not colon:
        return _no_condition(word)
    if kind.startswith("!"):
        return f"{shown(word)}: write `not {word.lstrip('!')}`"
    if "(" in kind:
        return f"{shown(word)}: a blank is missing before `(`"
    found = _parenthesis(word)
    # Of a target that is written wrong the judge knows more.
    if found and "%(" not in _TARGET.sub("", word):
        return _glued(word, found)
    try:
        judge(kind, match)
    except ValueError as error:
        return _located(word, str(error))
    return _glued(word, found) if found else ""


def _parenthesis(word: str) -> str:
    """Return the first parenthesis that stands in a condition, or nothing.

    oslo.policy sees parentheses at the ends of a word alone: one further in
    becomes part of the match, and with it all that stands behind it.
    """
    return next((c for c in _TARGET.sub("", word) if c in "()"), "")


def _glued(word: str, parenthesis: str) -> str:
    return (
        f"{shown(word)}: a blank is missing beside `{parenthesis}`; in a"
        " value parentheses are written %28 and %29"
    )


def _located(word: str, reason: str) -> str:
    """Begin the reason with the condition, unless it shows it already."""
    reason = " ".join(reason.split())
    return reason if shown(word) in reason else f"{shown(word)}: {reason}"


def _no_condition(word: str) -> str:
    if word.startswith("!"):
        return f"{shown(word)}: write `not` and a blank"
    if word in _OPERATORS:
        return f"`{word}` is written `{_OPERATORS[word]}`"
    return (
        f"{shown(word)} is no condition: a condition is `kind:match`, and a"
        " blank inside a value is written %20"
    )


def parse(name: str, text: str, conditions: list[str]) -> Any:
    """Return oslo.policy's tree of a text found right.

    :param conditions: those that ``read`` found; the tree has the same
    :raises ValueError: where oslo.policy understood something else
    """
    try:
        tree = policy.RuleDefault(name, text).check
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"oslo.policy cannot read it: {error}") from error
    if [str(leaf) for leaf in leaves(tree)] != conditions:
        raise ValueError("oslo.policy does not understand it")
    return tree


def leaves(check: Any) -> Iterator[Any]:
    """Yield the leaves of a tree of oslo.policy's in reading order."""
    if hasattr(check, "rules"):
        for part in check.rules:
            yield from leaves(part)
    elif isinstance(check, policy.NotCheck):
        yield from leaves(check.rule)
    else:
        yield check
