# SPDX-License-Identifier: Apache-2.0
"""From a decision to what is done about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from wsgiref.types import WSGIApplication

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.ports.effects import Asked, Effect, Outcome
from state_policy.wsgi import body
from state_policy.wsgi.judge import Judgement

#: What carries each verdict out.
Effects = Mapping[Verdict, Effect]


def plain(decision: Decision) -> bool:
    """Return whether there is nothing to do, to tell or to write down."""
    return (
        decision.verdict is Verdict.ALLOW
        and not decision.undecided
        and not decision.evidence
    )


def impossible(effects: Effects) -> frozenset[Verdict]:
    """Return the verdicts that nothing here can carry out."""
    return frozenset(
        verdict
        for verdict in Verdict
        if verdict is not Verdict.ALLOW and verdict not in effects
    )


def carry_out(
    effects: Effects,
    asked: Asked,
    judgement: Judgement,
    decision: Decision,
    record: Callable[[Decision, str | None], None],
) -> WSGIApplication | None:
    """Have a verdict carried out, or the next where it cannot be.

    :param record: gets each decision and what became of it, if not itself
    :returns: the answer; None where the request goes on
    """
    without = set(impossible(effects))
    while decision.verdict is not Verdict.ALLOW:
        outcome = _applied(effects, asked, decision, judgement)
        record(decision, outcome.reason)
        if outcome.response is not None:
            return outcome.response
        without.add(decision.verdict)
        decision = judgement.decide(without)
        if decision.verdict in without:
            break
    if not plain(decision):
        record(decision, None)
    return None


def _applied(
    effects: Effects, asked: Asked, decision: Decision, judgement: Judgement
) -> Outcome:
    verdict = decision.verdict
    if verdict is Verdict.QUARANTINE and not body.is_text(asked.environ):
        return Outcome(None, "Nova cannot read the body")
    return effects[verdict].apply(asked, decision, judgement.facts)
