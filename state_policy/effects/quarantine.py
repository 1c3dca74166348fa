# SPDX-License-Identifier: Apache-2.0
"""Carries ``quarantine`` out: the server leaves, the client sees success."""

from __future__ import annotations

import logging

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.facts import Facts
from state_policy.engine.ports.effects import Asked, Outcome, Parts
from state_policy.quarantine.conceal import Result, Wish, conceal
from state_policy.quarantine.reask import seen

LOG = logging.getLogger(__name__)

#: Says nothing of where servers go: the owner has no business there.
_FULL = (
    "Cannot '{operation}' instance {server_id} at present: it has to be kept "
    "for an inspection by the operator, and there is no room for it now. "
    "Send the request again later."
)


class Quarantine:
    """Moves the server instead of deleting it.

    :raises ValueError: where the driver cannot move servers, or nothing is
        configured to take them
    """

    verdict = Verdict.QUARANTINE

    def __init__(self, parts: Parts) -> None:
        if parts.mover is None:
            raise ValueError("the driver cannot move servers")
        policy = parts.settings.quarantine
        if not policy.enabled:
            raise ValueError(
                "[state_policy_quarantine] enabled is false, but a rule asks "
                "for quarantine"
            )
        self._mover = parts.mover
        self._answers = parts.answers
        self._policy = policy
        self._retry_after: int = parts.settings.retry_after

    def apply(self, asked: Asked, decision: Decision, facts: Facts) -> Outcome:
        """Move the server; where that is excluded the request goes on."""
        if asked.location.build_request:
            return Outcome(None, "it is only a build request")
        try:
            answer = conceal(
                self._mover,
                self._policy,
                asked.location.server_id,
                _wish(asked, decision, facts),
            )
        except Exception as e:
            # Raised only before anything was done.
            LOG.warning(
                "server %s is not moved",
                asked.location.server_id,
                exc_info=True,
            )
            return Outcome(None, f"moving failed: {type(e).__name__}")
        if answer.result is Result.MOVED:
            return Outcome(
                self._answers.accepted(asked.environ, asked.operation)
            )
        if answer.result is Result.FULL and self._policy.on_full == "deny":
            return self._full(asked, answer.reason)
        return Outcome(None, answer.reason)

    def _full(self, asked: Asked, reason: str | None) -> Outcome:
        message = _FULL.format(
            operation=asked.operation.action or asked.operation.name,
            server_id=asked.location.server_id,
        )
        return Outcome(
            self._answers.fault(
                asked.environ, 409, message, retry_after=self._retry_after
            ),
            reason,
        )


def _wish(asked: Asked, decision: Decision, facts: Facts) -> Wish:
    return Wish(
        operation=asked.operation.name,
        credentials=asked.caller.credentials,
        request_id=asked.caller.request_id,
        action_id=asked.caller.request_id or None,
        decision=decision.id,
        rule=decision.rule,
        revision=decision.revision,
        seen=seen(facts),
    )
