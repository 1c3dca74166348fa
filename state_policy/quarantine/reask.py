# SPDX-License-Identifier: Apache-2.0
"""Asks again for deletes that were accepted and have not ended.

Clients send one DELETE and then poll. A server that was deleted before its
rule was true would stay for ever, so the rule is asked again, in the name of
the one who sent the delete.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Facts
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.moving import Mover, PendingDelete
from state_policy.engine.ports.reading import Caller, Reader, UnreadError
from state_policy.engine.ruleset import RuleSet
from state_policy.quarantine.conceal import Result, Wish, conceal
from state_policy.quarantine.policy import Policy

LOG = logging.getLogger(__name__)

#: Seconds a delete has to end by itself.
FRESH = 10

#: Server, step, why, error.
Found = tuple[str, str, str, str | None]

_SEEN = {"server.vm_state": "vm_state", "server.task_state": "task_state"}


def seen(facts: Facts) -> dict[str, str | None]:
    """Return the states that a decision was made on."""
    return {_SEEN[key]: facts[key] for key in _SEEN if key in facts}


@dataclass(frozen=True, slots=True)
class Reasking:
    """Asks the quarantine rules once more.

    Only for deletes of the owner's own project: the rights of anybody else
    who sent one cannot be known any more. The sender counts as a plain
    member.
    """

    mover: Mover
    policy: Policy
    rules: RuleSet
    reader: Reader
    dry_run: bool = False

    def run(self) -> Iterator[Found]:
        """Ask for each; yield what was done and what failed."""
        if all(
            self.rules.operations[name].quarantine.constant is False
            for name in ("delete", "force_delete")
        ):
            return
        for pending in self.mover.pending_deletes(self.policy.projects, FRESH):
            try:
                yield from self._ask(pending)
            except Exception as e:
                LOG.warning(
                    "asking again for %s failed",
                    pending.server_id,
                    exc_info=True,
                )
                yield (
                    pending.server_id,
                    "conceal",
                    "its delete has not ended",
                    f"{type(e).__name__}: {e}",
                )

    def _ask(self, pending: PendingDelete) -> Iterator[Found]:
        if pending.sender.project_id != pending.owner.project_id:
            return
        if pending.locked:
            return
        caller = self.mover.caller_for(pending.sender, pending.request_id)
        decided = self._decide(pending, caller)
        if decided is None:
            return
        decision, facts = decided
        why = "its delete has not ended"
        if self.dry_run:
            yield (pending.server_id, "conceal", why, None)
            return
        wish = Wish(
            operation=pending.operation,
            credentials=caller.credentials,
            request_id=pending.request_id,
            decision=decision.id,
            rule=decision.rule,
            revision=decision.revision,
            seen=seen(facts),
        )
        answer = conceal(self.mover, self.policy, pending.server_id, wish)
        if answer.result is Result.MOVED:
            yield (pending.server_id, "conceal", why, None)
        else:
            LOG.info(
                "server %s is not moved: %s", pending.server_id, answer.reason
            )

    def _decide(
        self, pending: PendingDelete, caller: Caller
    ) -> tuple[Decision, Facts] | None:
        location = self.reader.locate(pending.server_id)
        operation = OPERATIONS[pending.operation]
        if location is None:
            return None
        may = self.reader.may(caller, location, operation.gate)
        if may is None:
            raise UnreadError("the sender's right to it cannot be read")
        if not may:
            return None
        needs = self.rules.operations[operation.name].needs
        facts = self.reader.read(caller, location, needs)
        decision = decide(
            self.rules,
            operation.name,
            facts,
            id=f"sweep:{pending.request_id}",
        )
        if decision.verdict is not Verdict.QUARANTINE:
            return None
        return decision, facts
