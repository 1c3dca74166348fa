# SPDX-License-Identifier: Apache-2.0
"""An expression as its author would write it."""

from __future__ import annotations

from state_policy.engine.expression import (
    All,
    Any,
    Condition,
    Constant,
    Expression,
    Not,
    Reference,
)


def unparse(expression: Expression) -> str:
    """Return the text of an expression; references stay references."""
    if isinstance(expression, Constant):
        return "@" if expression.value else "!"
    if isinstance(expression, Condition):
        return str(expression.literal)
    if isinstance(expression, Reference):
        return f"rule:{expression.name}"
    if isinstance(expression, Not):
        return f"not {_part(expression.part)}"
    word = " and " if isinstance(expression, All) else " or "
    return word.join(_part(part) for part in expression.parts)


def _part(expression: Expression) -> str:
    text = unparse(expression)
    return f"({text})" if isinstance(expression, All | Any) else text
