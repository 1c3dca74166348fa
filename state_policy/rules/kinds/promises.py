# SPDX-License-Identifier: Apache-2.0
"""What a kind promises, as far as it shows while rules are loaded.

What is broken here would show in a request otherwise: as an error, or as a
decision on a fact that is somebody else's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from typing import Any

from state_policy.engine.literal import Change, Literal
from state_policy.rules.faults import shown


def of_class(kind: Any, facts: Collection[str]) -> str:
    """Return what a class breaks, or nothing.

    :param facts: names of the facts that the driver reads
    """
    if getattr(kind.compile, "__isabstractmethod__", False):
        return "does not say how it compiles (no method `compile`)"
    if not hasattr(kind, "change"):
        return "does not say how its fact changes (no `change`)"
    if not isinstance(kind.change, Change):
        return (
            f"its `change` is {shown(repr(kind.change))}, which is no Change"
        )
    if not isinstance(kind.wants, Set):
        return f"its `wants` is {shown(repr(kind.wants))}, which is no set"
    for fact in sorted(kind.wants, key=str):
        if not (isinstance(fact, str) and _name(fact) in facts):
            return f"it wants {shown(str(fact))}, which the driver knows not"
    return ""


def of_literal(
    name: str, match: str, literal: Any, facts: Collection[str]
) -> str:
    """Return what a compiled condition breaks, or nothing.

    :param name: the kind's name
    :param match: the text behind it
    :param facts: names of the facts that the driver reads
    """
    if not isinstance(literal, Literal):
        return (
            f"its `compile` returns {shown(repr(literal))}, which is no"
            " Literal"
        )
    return next(_broken(name, match, literal, facts), "")


def _broken(
    name: str, match: str, literal: Literal, facts: Collection[str]
) -> Iterator[str]:
    if (literal.kind, literal.match) != (name, match):
        other = f"{literal.kind}:{literal.match}"
        yield f"it compiles to the condition {shown(other)}"
    fact: Any = literal.fact
    if not (isinstance(fact, str) and _name(fact) in (name, *facts)):
        yield (
            f"it looks at {shown(str(fact))}, which is neither a fact of its"
            " own nor one that the driver reads"
        )
    change: Any = literal.change
    if not isinstance(change, Change):
        yield f"its `change` is {shown(repr(change))}, which is no Change"
    for field in ("samples", "domain"):
        if not _hashable(getattr(literal, field)):
            yield f"its `{field}` are no tuple of values that can be hashed"
    names: Any = literal.names
    if names is not None and not (
        isinstance(names, frozenset)
        and all(isinstance(member, str) for member in names)
    ):
        yield "its `names` are no frozenset of texts"
    yield from _untested(literal)


def _untested(literal: Literal) -> Iterator[str]:
    for value in literal.samples:
        try:
            found: Any = literal.test(value)
        except Exception as error:  # noqa: BLE001 - a plugin may raise
            found = error
        if not isinstance(found, bool | None):
            yield (
                f"its `test` gives {shown(repr(found))} for its own sample"
                f" {shown(repr(value))}: neither True, False nor None"
            )


def _hashable(values: Any) -> bool:
    if not isinstance(values, tuple):
        return False
    try:
        hash(values)
    except TypeError:
        return False
    return True


def _name(fact: str) -> str:
    """Return the name in a fact's key, which may have a parameter."""
    return fact.partition(":")[0]
