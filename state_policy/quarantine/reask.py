# SPDX-License-Identifier: Apache-2.0
"""Asks again for deletes that were accepted and have not ended.

Clients send one DELETE and then poll. A server that was deleted before its
rule was true would stay for ever, so the rule is asked again, in the name of
the one who sent the delete.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Facts
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.moving import Mover, PendingDelete
from state_policy.engine.ports.reading import Caller, Reader, UnreadError
from state_policy.engine.ruleset import RuleSet
from state_policy.quarantine.conceal import Result, Wish, conceal, refusal
from state_policy.quarantine.policy import Policy
from state_policy.quarantine.record import Kind, RecordError, of
from state_policy.quarantine.report import Done, Report

LOG = logging.getLogger(__name__)

#: Seconds a delete has to end by itself.
FRESH = 10

WHY = "its delete has not ended"

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

    :ivar dry_run: say which servers would be moved, and why others that
        their rule sends into quarantine would not; move none
    """

    mover: Mover
    policy: Policy
    rules: RuleSet
    reader: Reader
    dry_run: bool = False

    def run(self) -> Report:
        """Ask for each; return what was done, what failed, what was unseen."""
        if all(
            self.rules.operations[name].quarantine.constant is False
            for name in ("delete", "force_delete")
        ):
            return Report(())
        found = self.mover.pending_deletes(self.policy.projects, FRESH)
        done = [
            done
            for pending in found.deletes
            if (done := self._guarded(pending)) is not None
        ]
        return Report(tuple(done), found.unseen)

    def _guarded(self, pending: PendingDelete) -> Done | None:
        try:
            return self._ask(pending)
        except Exception as e:
            LOG.warning(
                "asking again for %s failed", pending.server_id, exc_info=True
            )
            error = f"{type(e).__name__}: {e}"
            return Done(
                pending.server_id, "conceal", WHY, error, not self.dry_run
            )

    def _ask(self, pending: PendingDelete) -> Done | None:
        if pending.sender.project_id != pending.owner.project_id:
            return None
        if pending.locked:
            return None
        caller = self.mover.caller_for(pending.sender, pending.request_id)
        decided = self._decide(pending, caller)
        if decided is None:
            return None
        reason = self._released(pending) or self._move(
            pending, _wish(pending, caller, *decided)
        )
        if reason is None:
            return Done(
                pending.server_id, "conceal", WHY, acted=not self.dry_run
            )
        LOG.info("server %s is not moved: %s", pending.server_id, reason)
        if not self.dry_run:
            return None
        why = f"{WHY}, but {reason}"
        return Done(pending.server_id, "leave", why, acted=False)

    def _released(self, pending: PendingDelete) -> str | None:
        """Return that a server was given back since it was to be deleted.

        Its delete may be stuck still. To move it again would undo what an
        operator, or a rule, has just done. Of the same second, which is all
        that a database may keep, the delete counts: its sender knew of the
        release. What cannot be read is no release.
        """
        server = self.mover.look(pending.server_id)
        try:
            record = of(server)
        except RecordError:
            return None
        if server is None or record is None:
            return None
        if record.kind is not Kind.RELEASE or server.recorded_at is None:
            return None
        if server.recorded_at <= pending.sent:
            return None
        return "it was released since"

    def _move(self, pending: PendingDelete, wish: Wish) -> str | None:
        """Move it, or look whether that would be; return why it is not."""
        args = self.mover, self.policy, pending.server_id, wish
        if self.dry_run:
            return refusal(*args)
        answer = conceal(*args)
        if answer.result is Result.MOVED:
            return None
        return answer.reason or answer.result.value

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


def _wish(
    pending: PendingDelete, caller: Caller, decision: Decision, facts: Facts
) -> Wish:
    return Wish(
        operation=pending.operation,
        credentials=caller.credentials,
        request_id=pending.request_id,
        decision=decision.id,
        rule=decision.rule,
        revision=decision.revision,
        seen=seen(facts),
    )
