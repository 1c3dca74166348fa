# SPDX-License-Identifier: Apache-2.0
"""A whole set of rules, compiled: immutable, so that it can be swapped whole.

Built by ``state_policy.rules`` from policy files; the engine does not know
where rules come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from state_policy.engine import operations
from state_policy.engine.changes import READ_WITH
from state_policy.engine.expression import (
    Constant,
    Expression,
    Test,
    compile_expression,
    literals,
    references,
)
from state_policy.engine.facts import CALLER
from state_policy.engine.literal import Literal

#: Stands for the server's user in a condition on the caller. Not every
#: mapping names him; a driver reads the server's row then.
_USER = "%(user_id)s"


class Rule:
    """One named rule.

    :ivar name: as in a policy file
    :ivar expression: its tree
    :ivar test: the tree compiled
    :ivar literals: its literals, duplicates removed, in reading order
    :ivar needs: keys of the facts it looks at; the caller's only where he is
        compared with the server's user, whom a driver may have to read
    :ivar names: its own name and those of the rules it leads to
    :ivar constant: True or False for ``@`` and ``!`` (through references),
        else None
    """

    __slots__ = (
        "name",
        "expression",
        "test",
        "literals",
        "needs",
        "names",
        "constant",
    )

    def __init__(self, name: str, expression: Expression) -> None:
        self.name = name
        self.expression = expression
        self.test: Test = compile_expression(expression)
        self.literals: tuple[Literal, ...] = tuple(
            dict.fromkeys(literals(expression))
        )
        facts = {
            lit.fact
            for lit in self.literals
            if lit.fact != CALLER or lit.match == _USER
        }
        self.needs = frozenset(facts).union(
            *(READ_WITH.get(fact, ()) for fact in facts)
        )
        self.names: tuple[str, ...] = tuple(
            dict.fromkeys((name, *references(expression)))
        )
        self.constant: bool | None = (
            None if self.literals else self.test(MappingProxyType({}))
        )

    def __repr__(self) -> str:
        return f"<Rule {self.name}>"


@dataclass(frozen=True)
class OperationRules:
    """The rules of one operation: its own and one for each suffix."""

    operation: operations.Operation
    may: Rule
    wait: Rule
    brake: Rule
    quarantine: Rule
    escalate: Rule
    evidence: Rule

    @cached_property
    def all(self) -> tuple[Rule, ...]:
        """Return them in the order of evaluation."""
        return (
            self.may,
            self.wait,
            self.brake,
            self.quarantine,
            self.escalate,
            self.evidence,
        )

    @cached_property
    def needs(self) -> frozenset[str]:
        """Return the keys of all facts that the decision may need."""
        return frozenset().union(*(rule.needs for rule in self.all))

    @cached_property
    def plain(self) -> bool:
        """Return True where every request is allowed and nothing else done."""
        return self.may.constant is True and all(
            rule.constant is False for rule in self.all[2:]
        )


_NEVER = Constant(False)


@dataclass(frozen=True)
class RuleSet:
    """Every rule by name, defaults included.

    :ivar expressions: name to resolved tree
    :ivar revision: names the content (a digest), for logs and records
    :ivar sources: name to ``file:line`` for the rules that a file states
    """

    expressions: Mapping[str, Expression]
    revision: str
    sources: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def rules(self) -> Mapping[str, Rule]:
        """Return each rule compiled."""
        return MappingProxyType(
            {name: Rule(name, tree) for name, tree in self.expressions.items()}
        )

    @cached_property
    def operations(self) -> Mapping[str, OperationRules]:
        """Return the rules of each operation by its name."""
        return MappingProxyType(
            {
                name: OperationRules(
                    operation, *(self._suffixed(name, s) for s in _SUFFIXES)
                )
                for name, operation in operations.OPERATIONS.items()
            }
        )

    def _suffixed(self, operation: str, suffix: str) -> Rule:
        name = (
            f"server:{operation}:{suffix}" if suffix else f"server:{operation}"
        )
        found = self.rules.get(name)
        return found if found is not None else Rule(name, _NEVER)

    def prepare(self) -> RuleSet:
        """Compile everything now; return self.

        A set that several threads use is prepared before it is shared.
        """
        for rules in self.operations.values():
            _ = rules.all, rules.needs, rules.plain
        return self


_SUFFIXES = ("", "wait", "brake", "quarantine", "escalate", "evidence")
