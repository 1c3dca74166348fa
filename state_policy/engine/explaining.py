# SPDX-License-Identifier: Apache-2.0
"""Gathers what an explanation needs beside the decision.

Only refusals come here, so a few more facts may be read than the decision
needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from state_policy.engine import possible
from state_policy.engine.facts import Facts
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.reading import (
    Caller,
    Circumstances,
    Location,
    Reader,
    may_any,
)
from state_policy.engine.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Background:
    """What an explanation adds to a decision.

    :ivar possible: names of operations the caller could have now
    :ivar facts: those that were looked at
    """

    circumstances: Circumstances = field(default_factory=Circumstances)
    possible: tuple[str, ...] = ()
    facts: Facts = field(default_factory=dict)


class Explainer:
    """Knows whom to ask.

    :param rules: returns the rule set in force
    """

    def __init__(self, reader: Reader, rules: Callable[[], RuleSet]) -> None:
        self._reader = reader
        self._rules = rules

    def background(
        self, caller: Caller, location: Location, facts: Facts, refused: str
    ) -> Background:
        """Return what to add to a refusal.

        :param facts: those that are known; what is missing is read
        :param refused: the operation, which is not offered
        """
        rules = self._rules()
        missing = possible.needs(rules) - facts.keys()
        known = {**self._reader.read(caller, location, missing), **facts}
        return Background(
            self._reader.circumstances(caller, location),
            self._possible(rules, caller, location, known, refused),
            known,
        )

    def _possible(
        self,
        rules: RuleSet,
        caller: Caller,
        location: Location,
        known: Facts,
        refused: str,
    ) -> tuple[str, ...]:
        return tuple(
            name
            for name in possible.offers(
                rules,
                known,
                self._reader.natively_allowed(known),
                caller.is_admin,
            )
            if name != refused
            and may_any(self._reader, caller, location, OPERATIONS[name].gates)
        )
