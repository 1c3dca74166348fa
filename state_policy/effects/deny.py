# SPDX-License-Identifier: Apache-2.0
"""The refusal: Nova's own form, one sentence, and the details."""

from __future__ import annotations

import logging

from state_policy.engine import sentence
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.explaining import Background, Explainer
from state_policy.engine.facts import Facts
from state_policy.engine.ports.effects import Asked, Outcome, Parts

LOG = logging.getLogger(__name__)


class Deny:
    """Answers 403, 409 or 503 with an explanation."""

    verdict = Verdict.DENY

    def __init__(self, parts: Parts) -> None:
        self._answers = parts.answers
        self._explainer = Explainer(parts.reader, parts.rules)

    def apply(self, asked: Asked, decision: Decision, facts: Facts) -> Outcome:
        """Return the refusal."""
        background = self._background(asked, decision, facts)
        told = background.circumstances, background.possible
        return Outcome(
            self._answers.fault(
                asked.environ,
                decision.code or 403,
                sentence.tell(decision, asked.location.server_id, *told),
                details={"state_policy": sentence.details(decision, *told)},
                retry_after=decision.retry_after,
            )
        )

    def _background(
        self, asked: Asked, decision: Decision, facts: Facts
    ) -> Background:
        if decision.undecided:
            return Background()
        try:
            return self._explainer.background(
                asked.caller, asked.location, facts, decision.operation
            )
        except Exception as error:  # noqa: BLE001
            # A refusal stands without its explanation.
            LOG.warning("a refusal goes unexplained: %s", type(error).__name__)
            return Background()
