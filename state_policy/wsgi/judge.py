# SPDX-License-Identifier: Apache-2.0
"""From a recognised request to a decision, reading no fact in vain."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, replace

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
from state_policy.wsgi.patience import Patience

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

    @property
    def known_id(self) -> str:
        """Return the server's own id, or that of the path till it is found."""
        return self.location.server_id if self.location else self.server_id


@dataclass(frozen=True, slots=True)
class Judgement:
    """The facts of a request and the rules; decides as often as asked."""

    operation: str
    location: Location
    facts: Facts
    rules: RuleSet
    retry_after: int
    refuse_unknown: bool
    id: str

    def decide(self, without: Set[Verdict]) -> Decision:
        """Return the decision, some verdicts being out of the question."""
        return decide(
            self.rules,
            self.operation,
            self.facts,
            id=self.id,
            retry_after=self.retry_after,
            refuse_unknown=self.refuse_unknown,
            without=without,
        )


@dataclass(frozen=True, slots=True)
class Difference:
    """Rules on trial that decide otherwise than those in force.

    :ivar other: what the rules on trial decide
    """

    location: Location
    decision: Decision
    other: Decision


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
        self._patience = Patience()
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
        """Return what the rules in force have to decide.

        :returns: None where the request is allowed whatever the facts are,
            or the server is not there
        :raises UnreadError: where it cannot be told whether it is there
        """
        name = request.operation.name
        rules = self._rules()
        if _settled((rules.operations[name],), request.caller):
            return None
        return self._judgement(request, rules, rules)

    def compare(
        self,
        request: Request,
        judgement: Judgement | None,
        decision: Decision | None,
    ) -> Difference | None:
        """Return what the rules on trial would change.

        Their facts are read apart, after those of the rules in force: what
        fails or takes long here must not change what those decide.

        :param judgement: of the rules in force; None: they allow, whatever
            the facts are
        :param decision: what they decide, where there is a judgement
        :raises UnreadError: as :meth:`judge` does
        """
        if self._shadow is None or not self._patience.left:
            return None
        tried, rules = self._shadow(), self._rules()
        name = request.operation.name
        if judgement is None and (
            _settled((tried.operations[name],), request.caller)
            # Then there is no such server.
            or not _settled((rules.operations[name],), request.caller)
        ):
            return None
        with self._patience.spent():
            if judgement is None:
                judgement = self._judgement(request, rules, tried)
            else:
                judgement = self._with_more(request, judgement, tried)
        if judgement is None:
            return None
        decision = decision or judgement.decide(frozenset())
        other = replace(judgement, rules=tried).decide(frozenset())
        if other.undecided and not decision.undecided:
            # What only they need could not be read.
            return None
        if (other.verdict, other.code) == (decision.verdict, decision.code):
            return None
        return Difference(judgement.location, decision, other)

    def _judgement(
        self, request: Request, rules: RuleSet, needing: RuleSet
    ) -> Judgement | None:
        """Return a judgement; None where there is no such server.

        :param needing: the rules whose facts are read
        """
        name = request.operation.name
        location = request.location or self._reader.locate(request.server_id)
        if location is None:
            return None
        needs = needing.operations[name].needs
        return Judgement(
            name,
            location,
            self._reader.read(request.caller, location, needs),
            rules,
            self.retry_after,
            self.refuse_unknown,
            str(uuid.uuid4()),
        )

    def _with_more(
        self, request: Request, judgement: Judgement, tried: RuleSet
    ) -> Judgement:
        """Return a judgement with the facts that only others need, too."""
        name = request.operation.name
        needed = judgement.rules.operations[name].needs
        more = tried.operations[name].needs - needed
        if not more:
            return judgement
        found = self._reader.read(request.caller, judgement.location, more)
        # The caller comes with every reading; who is asked for him knows more.
        known = {k: f for k, f in judgement.facts.items() if k not in more}
        return replace(judgement, facts={**found, **known})

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
