# SPDX-License-Identifier: Apache-2.0
"""The contract of a kind: a condition that rules can use.

A kind is a class under the entry point group ``oslo.policy.rule_checks``,
its entry point named as rules write it (``server.vm_state``, with a dot).
oslo.policy makes one object of it for each condition; the engine works on
the literal that the object compiles to.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from oslo_policy.policy import Check

from state_policy.engine.facts import UNREAD, Facts
from state_policy.engine.literal import Change, Literal


@dataclass(frozen=True, slots=True)
class Subject:
    """What a kind of a third party is told when it reads a fact itself.

    :ivar server_id: the server's id
    :ivar project_id: the project the server belongs to
    :ivar credentials: the caller's, as policy sees them
    :ivar facts: the facts named in ``Kind.wants`` that could be read
    """

    server_id: str
    project_id: str
    credentials: Mapping[str, Any]
    facts: Facts


class Kind(Check):  # type: ignore[misc,unused-ignore]
    """A condition on one fact.

    A subclass sets ``change``, and ``compile``s to a literal. It is made
    while rules are loaded: ``compile`` raises ValueError for a match that it
    does not understand, its text being the reason that the rule's author
    reads (lower case, no full stop).

    The driver reads the facts of the kinds that come with the project. A
    kind of a third party either looks at one of those, or reads a fact of
    its own with ``read``.
    """

    #: How the fact can change; decides what lifts a refusal.
    change: ClassVar[Change]

    #: Keys of facts, known to the driver, that ``read`` wants to look at.
    wants: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, kind: str, match: str) -> None:
        super().__init__(kind, match)
        self.literal: Literal = self.compile()

    @abc.abstractmethod
    def compile(self) -> Literal:
        """Return the condition as the engine wants it.

        :raises ValueError: where ``self.match`` makes no sense
        """

    @classmethod
    def read(cls, key: str, subject: Subject) -> Any:
        """Return the value of a fact of this kind's own.

        Called in a request's way: it must be quick, and it holds no lock.
        Whatever it raises counts as "not read".

        :param key: the fact's key, the kind's name with its parameter if any
        :returns: the value; None where there is no value
        :raises LookupError: where the value cannot be had
        """
        raise LookupError(key)

    def literal_for(
        self,
        test: Callable[[Any], bool | None],
        samples: Iterable[Any],
        **more: Any,
    ) -> Literal:
        """Return a literal of this kind and match.

        :param test: from the fact's value to True, False or None
        :param samples: see ``Literal``
        :param more: further fields of ``Literal``; ``fact`` is the kind's
            name unless given
        """
        fields = {"fact": self.kind, **more}
        return Literal(
            kind=self.kind,
            match=self.match,
            change=self.change,
            test=test,
            samples=tuple(dict.fromkeys(samples)),
            **fields,
        )

    def __call__(
        self,
        target: Mapping[str, Any],
        creds: Mapping[str, Any],
        enforcer: Any,
        current_rule: str | None = None,
    ) -> bool:
        """Return what oslo.policy's own Enforcer wants to know.

        Facts stand in ``target``, or in ``creds``, under their keys. What is
        undecided is False here: the Enforcer has two values only.
        """
        fact = self.literal.fact
        value = target.get(fact, UNREAD)
        if value is UNREAD:
            value = creds.get(fact, UNREAD)
        return value is not UNREAD and self.literal.test(value) is True
