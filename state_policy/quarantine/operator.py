# SPDX-License-Identifier: Apache-2.0
"""What an operator sees of the servers in quarantine, and does with one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from state_policy.engine.ports.moving import Mover, MovingError, Server
from state_policy.quarantine import plan as plans
from state_policy.quarantine import purge, release
from state_policy.quarantine.plan import Phase
from state_policy.quarantine.policy import Policy
from state_policy.quarantine.record import Record, RecordError, of
from state_policy.quarantine.report import Done

#: Phases of servers that the list leaves out.
_NOT_HELD = (Phase.DELETED, Phase.NATIVE, Phase.RELEASED)


class RefusedError(Exception):
    """What was asked for cannot be done; the text says why."""


@dataclass(frozen=True, slots=True)
class Held:
    """One server in quarantine.

    :ivar record: its newest record, None where it has none that is readable
    :ivar next: what the next sweep does with it, rules left aside
    """

    server: Server
    record: Record | None
    phase: Phase
    completed: bool
    next: plans.Plan


def held(
    mover: Mover, policy: Policy
) -> tuple[tuple[Held, ...], tuple[str, ...]]:
    """Return every server in quarantine, and what could not be seen.

    :returns: the servers, oldest first; names of cells and ids of servers
    """
    listing = mover.held(policy.projects)
    found, unseen = [], list(listing.unseen)
    for server_id in listing.ids:
        try:
            one = find(mover, policy, server_id)
        except MovingError:
            unseen.append(server_id)
            continue
        if one is not None and one.phase not in _NOT_HELD:
            found.append(one)
    found.sort(key=_since)
    return tuple(found), tuple(unseen)


def find(mover: Mover, policy: Policy, server_id: str) -> Held | None:
    """Return one server; None where it is unknown or never was moved.

    :raises MovingError: where its cell does not answer
    """
    server = mover.look(server_id)
    if server is None:
        return None
    try:
        record = of(server)
    except RecordError:
        record = None
    if record is None and server.mapped.project_id not in policy.projects:
        return None
    return Held(
        server,
        record,
        plans.phase(server, record, policy),
        record is not None and plans.completed(server, record),
        plans.plan(server, record, policy, mover.now()),
    )


def _since(one: Held) -> tuple[datetime, str]:
    since = one.record.since if one.record else datetime.max
    return since, one.server.id


def release_one(
    mover: Mover, policy: Policy, server_id: str, dry_run: bool = False
) -> Done:
    """Give a server back to its owner, concealed or settled.

    :raises RefusedError: where it is not in quarantine
    """
    one, record = _movable(mover, policy, server_id)
    why = "it was asked for" + release.caveat(mover, one.server, record)
    if not dry_run:
        release.release(mover, one.server, record)
    return Done(one.server.id, "release", why, acted=not dry_run)


def purge_one(
    mover: Mover, policy: Policy, server_id: str, dry_run: bool = False
) -> Done:
    """Delete a server that is settled; asked again, with its state reset.

    :raises RefusedError: where it is not in quarantine, or an operation that
        its owner began still runs on it
    """
    one, record = _movable(mover, policy, server_id)
    if one.phase is Phase.CONCEALED:
        raise RefusedError(
            f"server {server_id} is still concealed and {one.next.why}; "
            "sweep it first, with --settle-now to wait for nothing"
        )
    if one.phase is Phase.RELEASING:
        raise RefusedError(f"server {server_id} is being released")
    if not dry_run:
        purge.purge(mover, one.server, record)
    return Done(one.server.id, "purge", "it was asked for", acted=not dry_run)


def refuse_to_sweep(
    mover: Mover, policy: Policy, server_id: str, settle_now: bool = False
) -> None:
    """Refuse where a sweep of one server has nothing to do with it.

    :param settle_now: whether it is to be settled whatever runs on it. Then
        it has to be concealed, or deleted meanwhile: what is being released
        does not turn round
    :raises RefusedError: where it has not
    :raises MovingError: where its cell does not answer
    """
    one = find(mover, policy, server_id)
    if one is None or one.phase in (Phase.NATIVE, Phase.RELEASED):
        raise RefusedError(f"server {server_id} is not in quarantine")
    if one.phase is Phase.DELETED:
        if one.next.step is not plans.Step.GIVE_BACK:
            raise RefusedError(f"server {server_id} is deleted")
    elif settle_now and one.phase is not Phase.CONCEALED:
        raise RefusedError(
            f"server {server_id} is not concealed, its phase is {one.phase}"
        )


def _movable(
    mover: Mover, policy: Policy, server_id: str
) -> tuple[Held, Record]:
    one = find(mover, policy, server_id)
    if one is None:
        raise RefusedError(f"server {server_id} is not in quarantine")
    if one.record is None:
        raise RefusedError(f"server {server_id} has no record of a move")
    if one.phase is Phase.DELETED:
        raise RefusedError(f"server {server_id} is deleted")
    if one.phase in (Phase.ODD, Phase.RELEASED):
        raise RefusedError(f"server {server_id} is not in quarantine")
    return one, one.record
