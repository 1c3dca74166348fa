# SPDX-License-Identifier: Apache-2.0
"""What carries a verdict out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from wsgiref.types import WSGIApplication, WSGIEnvironment

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.facts import Facts
from state_policy.engine.operations import Operation
from state_policy.engine.ports.reading import Caller, Location


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


class Effect(Protocol):
    """Carries one verdict out. Loaded by name from ``state_policy.effects``."""

    verdict: Verdict

    def apply(self, asked: Asked, decision: Decision, facts: Facts) -> Outcome:
        """Act, and say what to answer. Must not raise once it has acted."""
