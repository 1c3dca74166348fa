# SPDX-License-Identifier: Apache-2.0
"""What carries a verdict out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from wsgiref.types import WSGIApplication, WSGIEnvironment

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.facts import Facts
from state_policy.engine.operations import Operation
from state_policy.engine.ports.answering import Answers
from state_policy.engine.ports.moving import Mover
from state_policy.engine.ports.reading import Caller, Location, Reader
from state_policy.engine.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Asked:
    """One request on one server whose caller may do what it asks."""

    operation: Operation
    environ: WSGIEnvironment
    caller: Caller
    location: Location


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a verdict.

    :ivar response: the answer to send; None where the request goes on as if
        the rule were false
    :ivar reason: why it goes on, for the log
    """

    response: WSGIApplication | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """What an effect may be made of; the composition root has them.

    :ivar mover: None where the driver cannot move servers
    :ivar rules: returns the rule set in force
    :ivar settings: values of our options, by attribute
    """

    reader: Reader
    answers: Answers
    mover: Mover | None
    rules: Callable[[], RuleSet]
    settings: Any


class Effect(Protocol):
    """Carries one verdict out.

    An entry point of the group ``state_policy.effects`` names a class that is
    called with :class:`Parts` when the filter is built. Where it cannot work
    with them it raises ValueError: the service then does not start.
    """

    verdict: Verdict

    def apply(self, asked: Asked, decision: Decision, facts: Facts) -> Outcome:
        """Act, and say what to answer. Must not raise once it has acted."""
