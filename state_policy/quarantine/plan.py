# SPDX-License-Identifier: Apache-2.0
"""What has to be done next with a server in quarantine. Pure.

The newest record says in which direction a move goes, the stores say how far
it is.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from state_policy.engine.facts import Age
from state_policy.engine.ports.moving import Server
from state_policy.quarantine import purge
from state_policy.quarantine.policy import Policy
from state_policy.quarantine.record import Kind, Record


class Step(enum.StrEnum):
    """What to do with one server."""

    NOTHING = "nothing"
    FINISH = "finish"
    SETTLE = "settle"
    GIVE_BACK = "give back"
    RELEASE = "release"
    PURGE = "purge"
    STUCK = "stuck"
    ODD = "odd"


class Phase(enum.StrEnum):
    """Where a server is on its way.

    NATIVE ones were never moved: somebody made them in the project. RELEASED
    ones are their owner's again.
    """

    CONCEALED = "concealed"
    SETTLED = "settled"
    RELEASING = "releasing"
    RELEASED = "released"
    PURGING = "purging"
    DELETED = "deleted"
    NATIVE = "native"
    ODD = "odd"


@dataclass(frozen=True, slots=True)
class Plan:
    """A step and why."""

    step: Step
    why: str


def phase(server: Server, record: Record | None, policy: Policy) -> Phase:
    """Return where a server is on its way."""
    if server.deleted:
        return Phase.DELETED
    if record is None:
        native = server.owner == server.mapped and not server.hidden
        return Phase.NATIVE if native else Phase.ODD
    if record.kind is Kind.RELEASE:
        released = (
            server.mapped == record.owner
            and server.owner == record.owner
            and not server.hidden
        )
        return Phase.RELEASED if released else Phase.RELEASING
    if server.hidden:
        return Phase.CONCEALED
    if server.owner.project_id not in policy.projects:
        return Phase.ODD
    return Phase.PURGING if record.kind is Kind.PURGE else Phase.SETTLED


def plan(
    server: Server, record: Record | None, policy: Policy, now: datetime
) -> Plan:
    """Return what is due, the rules of purge and release left aside."""
    found = phase(server, record, policy)
    if found is Phase.NATIVE:
        return Plan(Step.NOTHING, "it was made in the quarantine project")
    if record is None or found is Phase.ODD:
        return Plan(Step.ODD, "no record of the move that fits its state")
    if found is Phase.DELETED:
        return _plan_deleted(server, record, policy)
    if found is Phase.RELEASED:
        return Plan(Step.NOTHING, "it is released")
    if found is Phase.RELEASING:
        return Plan(Step.RELEASE, "its release has not ended")
    if found is Phase.CONCEALED:
        why = settled(server, record, policy, now)
        if why is not None:
            return Plan(Step.SETTLE, why)
        return Plan(Step.FINISH, "an operation runs")
    if found is Phase.PURGING:
        return _plan_purge(server, record, now)
    if (now - record.since).total_seconds() >= policy.retention:
        return Plan(Step.PURGE, "its retention has passed")
    return Plan(Step.FINISH, "it is settled")


def _plan_deleted(server: Server, record: Record, policy: Policy) -> Plan:
    if server.hidden:
        return Plan(Step.GIVE_BACK, "it was deleted while concealed")
    if (
        server.owner.project_id not in policy.projects
        and server.mapped != record.owner
    ):
        return Plan(Step.GIVE_BACK, "it was deleted while concealed")
    return Plan(Step.NOTHING, "it is deleted")


def _plan_purge(server: Server, record: Record, now: datetime) -> Plan:
    seconds = (now - record.at).total_seconds()
    if purge.due(server, record, seconds):
        return Plan(Step.PURGE, "its delete has not taken effect")
    if record.attempts >= purge.ATTEMPTS and seconds >= purge.PATIENCE:
        return Plan(Step.STUCK, f"{record.attempts} deletes had no effect")
    return Plan(Step.NOTHING, "its delete is under way")


def settled(
    server: Server, record: Record, policy: Policy, now: datetime
) -> str | None:
    """Return why a concealed server can change its owner now, or None.

    An operation whose requester's project is not the row's any more can
    never end; so nothing may run, or nothing may be waited for.
    """
    if (now - record.since).total_seconds() >= policy.deadline:
        return "its deadline has passed"
    if server.idle is not None and server.idle < policy.settle_after:
        return None
    if server.host_up is False:
        return "its host is down"
    if server.task_state is None and not server.running:
        return "nothing runs"
    return None


def stranded(server: Server) -> tuple[str, ...]:
    """Return what has not ended when a server is settled."""
    task = {server.task_state} if server.task_state else set()
    return tuple(sorted(server.running | task))


def completed(server: Server, record: Record) -> bool:
    """Return whether what ran when it was concealed came to a good end."""
    return (
        record.busy
        and record.kind is not Kind.CONCEAL
        and not record.stranded
        and server.task_state is None
        and server.vm_state not in ("building", "error")
    )


def age(record: Record, now: datetime) -> Age:
    """Return how long a server has been in quarantine."""
    return Age(max(0.0, (now - record.since).total_seconds()))
