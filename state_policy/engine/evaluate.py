# SPDX-License-Identifier: Apache-2.0
"""From a rule set, an operation and facts to a decision.

Pure and total: no input makes it raise, and with facts missing it decides
what can be decided. What acts (brake, wait, quarantine, escalate, evidence)
acts only on True.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from state_policy.engine import lifting
from state_policy.engine.decision import Blocker, Decision, Verdict
from state_policy.engine.expression import blockers
from state_policy.engine.facts import CALLER, UNREAD, Facts, part, single
from state_policy.engine.literal import Change, Literal
from state_policy.engine.ruleset import OperationRules, Rule, RuleSet

#: Seconds, where a passing fact other than an age lifts.
RETRY_AFTER = 30


def decide(
    rules: RuleSet,
    operation: str,
    facts: Facts,
    *,
    id: str = "",
    retry_after: int = RETRY_AFTER,
    refuse_unknown: bool = False,
    without: Set[Verdict] = frozenset(),
) -> Decision:
    """Decide one request.

    :param rules: the rule set
    :param operation: a name of ``operations.OPERATIONS``
    :param facts: what is known; a missing key is a fact not read
    :param id: names the decision in answers, logs and records
    :param retry_after: seconds to say where nobody knows how long
    :param refuse_unknown: refuse with 503 where missing facts leave open
        whether the request may pass, instead of passing it on
    :param without: verdicts that are out of the question this time, because
        something outside the rules excludes them
    """
    found = rules.operations[operation]
    make = _Maker(rules.revision, operation, facts, id)
    may = found.may.test(facts)
    if may is False:
        return _refuse(found, facts, make, retry_after, without)
    if may is None:
        if refuse_unknown:
            return make(
                Verdict.DENY,
                (found.may,),
                code=503,
                retry_after=retry_after,
                undecided=True,
            )
        return make(Verdict.ALLOW, (found.may,), undecided=True)
    if Verdict.BRAKE not in without and found.brake.test(facts) is True:
        return make(
            Verdict.BRAKE,
            (found.brake, found.may),
            code=429,
            retry_after=retry_after,
        )
    evidence = found.evidence.test(facts) is True
    for verdict, rule in (
        (Verdict.QUARANTINE, found.quarantine),
        (Verdict.ESCALATE, found.escalate),
    ):
        if verdict not in without and rule.test(facts) is True:
            return make(verdict, (rule, found.may), evidence=evidence)
    return make(Verdict.ALLOW, (found.may,), evidence=evidence)


def _refuse(
    found: OperationRules,
    facts: Facts,
    make: _Maker,
    retry_after: int,
    without: Set[Verdict],
) -> Decision:
    may = found.may
    reasons = {
        "blocking": tuple(
            dict.fromkeys(
                Blocker(lit.kind, lit.match, lit.fact, holds)
                for lit, holds in blockers(may.expression, facts)
            )
        ),
        "lifts": lifting.lifts(may, facts),
    }
    seconds = lifting.waiting_time(may, facts, retry_after)
    if (
        seconds is not None
        and Verdict.WAIT not in without
        and found.wait.test(facts) is True
    ):
        return make(
            Verdict.WAIT,
            (found.wait, may),
            code=409,
            retry_after=seconds,
            **reasons,
        )
    # Passing and movable facts together: what neither lifts alone the two
    # may lift in turn.
    later = seconds is not None or lifting.liftable(
        may, facts, Change.PASSING, Change.MOVABLE
    )
    return make(
        Verdict.DENY,
        (may,),
        code=409 if later else 403,
        retry_after=seconds,
        **reasons,
    )


class _Maker:
    """Makes the decision of one request; knows what all outcomes share."""

    def __init__(self, revision: str, operation: str, facts: Facts, id: str):
        self._revision = revision
        self._operation = operation
        self._facts = facts
        self._id = id

    def __call__(
        self, verdict: Verdict, rules: Iterable[Rule], **more: Any
    ) -> Decision:
        rules = tuple(rules)
        return Decision(
            operation=self._operation,
            verdict=verdict,
            rule=rules[0].name,
            rules=tuple(dict.fromkeys(n for r in rules for n in r.names)),
            facts=_seen(rules, self._facts),
            revision=self._revision,
            id=self._id,
            **more,
        )


def _seen(rules: Iterable[Rule], facts: Facts) -> Mapping[str, Any]:
    """Return the facts that rules look at; of sets what they name."""
    seen: dict[str, Any] = {}
    sets: dict[str, list[Literal]] = {}
    for rule in rules:
        for literal in rule.literals:
            fact = literal.fact
            value = facts.get(fact, UNREAD)
            if value is UNREAD:
                continue
            seen[fact] = value
            if fact != CALLER and not single(value):
                sets.setdefault(fact, []).append(literal)
    for fact, literals in sets.items():
        if not all(literal.whole for literal in literals):
            names = (literal.names or frozenset() for literal in literals)
            seen[fact] = part(seen[fact], frozenset().union(*names))
    return seen
