# SPDX-License-Identifier: Apache-2.0
"""From a recognised request to a decision, reading no fact in vain."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import CALLER, Facts
from state_policy.engine.operations import OPERATIONS, Operation
from state_policy.engine.ports.reading import (
    Caller,
    Location,
    Reader,
    may_any,
)
from state_policy.engine.ruleset import OperationRules, RuleSet

#: Returns the rule set in force.
Rules = Callable[[], RuleSet]


@dataclass(frozen=True, slots=True)
class Request:
    """A request on one server, recognised.

    :ivar location: None while nobody has looked
    :ivar policies: of the cloud, of which it asks one about this request;
        None while nobody has looked which
    """

    operation: Operation
    server_id: str
    caller: Caller
    location: Location | None = None
    policies: tuple[str, ...] | None = None

    @property
    def gates(self) -> tuple[str, ...]:
        """Return the policies of which the cloud asks one."""
        return self.operation.gates if self.policies is None else self.policies


@dataclass(frozen=True, slots=True)
class Judgement:
    """The facts of a request and the rules to ask; decides as often as asked.

    :ivar shadow: rules that are tried beside, or None
    """

    operation: str
    location: Location
    facts: Facts
    rules: RuleSet
    shadow: RuleSet | None
    retry_after: int
    refuse_unknown: bool
    id: str

    def decide(self, without: Set[Verdict]) -> Decision:
        """Return the decision, some verdicts being out of the question."""
        return self._decide(self.rules, without)

    def differing(self, decision: Decision) -> Decision | None:
        """Return what the shadow rules decide, where it is something else."""
        if self.shadow is None:
            return None
        other = self._decide(self.shadow, frozenset())
        same = (other.verdict, other.code) == (decision.verdict, decision.code)
        return None if same else other

    def _decide(self, rules: RuleSet, without: Set[Verdict]) -> Decision:
        return decide(
            rules,
            self.operation,
            self.facts,
            id=self.id,
            retry_after=self.retry_after,
            refuse_unknown=self.refuse_unknown,
            without=without,
        )


class Judge:
    """Knows the rules in force and who reads facts.

    :param shadow: rules that are tried beside, or None
    :param retry_after: seconds to say where nobody knows how long
    :param refuse_unknown: refuse where missing facts leave open whether a
        request may pass
    """

    def __init__(
        self,
        reader: Reader,
        rules: Rules,
        shadow: Rules | None = None,
        *,
        retry_after: int = 30,
        refuse_unknown: bool = False,
    ) -> None:
        self._reader = reader
        self._rules = rules
        self._shadow = shadow
        self.retry_after = retry_after
        self.refuse_unknown = refuse_unknown

    @property
    def stated(self) -> bool:
        """Return whether a policy file states any rule."""
        return bool(self._rules().sources)

    @property
    def idle(self) -> bool:
        """Return whether there is nothing to decide, whatever is asked."""
        return not self.stated and self._shadow is None

    def judge(self, request: Request) -> Judgement | None:
        """Return what there is to decide.

        :returns: None where the request is allowed whatever the facts are,
            or the server is not there
        :raises UnreadError: where it cannot be told whether it is there
        """
        name = request.operation.name
        rules = self._rules()
        shadow = self._shadow() if self._shadow else None
        own = rules.operations[name]
        if own.plain and shadow is None:
            return None
        concerned = [own]
        if shadow is not None:
            concerned.append(shadow.operations[name])
        if _settled(concerned, request.caller):
            return None
        location = request.location or self._reader.locate(request.server_id)
        if location is None:
            return None
        needs = frozenset().union(*(found.needs for found in concerned))
        return Judgement(
            name,
            location,
            self._reader.read(request.caller, location, needs),
            rules,
            shadow,
            self.retry_after,
            self.refuse_unknown,
            str(uuid.uuid4()),
        )

    def unread(self, operation: str) -> Decision:
        """Return the decision on a server, or by a caller, not known.

        It holds no fact.
        """
        rules = self._rules()
        refused = self.refuse_unknown
        return Decision(
            operation=operation,
            verdict=Verdict.DENY if refused else Verdict.ALLOW,
            code=503 if refused else None,
            retry_after=self.retry_after if refused else None,
            rule=rules.operations[operation].may.name,
            undecided=True,
            revision=rules.revision,
            id=str(uuid.uuid4()),
        )

    def strange(self, request: Request) -> bool:
        """Return whether Nova certainly refuses a request by itself.

        Asked where judging failed: whatever it was, a foreign server must
        look like an absent one.
        """
        try:
            location = request.location or self._reader.locate(
                request.server_id
            )
            if location is None:
                return True
            may = may_any(
                self._reader, request.caller, location, request.gates
            )
            return may is False
        except Exception:  # noqa: BLE001
            # It has failed and was written down before.
            return False

    def open_to_actions(self, caller: Caller) -> bool:
        """Return whether every action is allowed, whatever it is and meets."""
        rules = self._rules()
        return _settled(
            (
                rules.operations[name]
                for name, operation in OPERATIONS.items()
                if operation.action is not None
            ),
            caller,
        )


def _settled(concerned: Iterable[OperationRules], caller: Caller) -> bool:
    """Return whether the caller alone settles it: a plain allow."""
    facts = {CALLER: caller.credentials}
    return all(found.plain or _allows(found, facts) for found in concerned)


def _allows(found: OperationRules, facts: Facts) -> bool:
    """Return whether these facts are enough to allow and do nothing else."""
    _, _, *others = found.all
    return found.may.test(facts) is True and all(
        rule.test(facts) is False for rule in others
    )
