# SPDX-License-Identifier: Apache-2.0
"""Taking a server out of its owner's sight.

The row and the record are written together, and from then on the server is
in quarantine whatever happens next: no error reaches the client, and what is
left undone is the sweep's.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from state_policy.engine.ports.moving import (
    GoneError,
    Mover,
    MovingError,
    Owner,
    Server,
)
from state_policy.quarantine import exclusions, finish
from state_policy.quarantine.policy import Policy
from state_policy.quarantine.record import (
    Kind,
    Record,
    RecordError,
    dump,
    of,
)

LOG = logging.getLogger(__name__)


class Result(enum.Enum):
    """What became of a server that was to be moved."""

    MOVED = "moved"
    EXCLUDED = "excluded"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of it, and why where it was not moved."""

    result: Result
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """A delete that is to be carried out by moving the server.

    :ivar credentials: of who sent it
    :ivar request_id: of the request that sent it
    :ivar action_id: id to give the server's action; None to make one up
    :ivar vm_state: what the decision was made on; a server in another state
        by now is not moved. Absent where the decision did not look at it
    """

    operation: str
    credentials: Mapping[str, Any]
    request_id: str
    action_id: str | None = None
    decision: str = ""
    rule: str | None = None
    revision: str = ""
    seen: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A server that nothing keeps from being moved, and its record."""

    server: Server
    record: Record
    text: str


def conceal(
    mover: Mover, policy: Policy, server_id: str, wish: Wish
) -> Answer:
    """Move a server out of sight, or say why not.

    Whoever loses a race against another request for the same gets the same
    answer as the winner, whatever the loser stumbled over meanwhile: the
    winner may have taken the last room.

    :raises Exception: what the stores raise, only before anything was done
    """
    try:
        answer = _try(mover, policy, server_id, wish)
    except GoneError as e:
        answer = Answer(Result.EXCLUDED, str(e))
    except Exception:
        if _lost(mover, server_id):
            return Answer(Result.MOVED)
        raise
    if answer.result is not Result.MOVED and _lost(mover, server_id):
        return Answer(Result.MOVED)
    return answer


def _lost(mover: Mover, server_id: str) -> bool:
    """Return whether somebody else has concealed a server."""
    try:
        server = mover.look(server_id)
    except MovingError:
        return False
    return server is not None and is_concealed(server)


def refusal(
    mover: Mover, policy: Policy, server_id: str, wish: Wish
) -> str | None:
    """Return why a server would not be moved now, None where it would.

    Everything is looked at and nothing is done.

    :raises Exception: what the stores raise
    """
    try:
        found = _prepare(mover, policy, server_id, wish)
    except GoneError as e:
        return str(e)
    if isinstance(found, Answer) and found.result is not Result.MOVED:
        return found.reason or found.result.value
    return None


def _try(mover: Mover, policy: Policy, server_id: str, wish: Wish) -> Answer:
    found = _prepare(mover, policy, server_id, wish)
    if isinstance(found, Answer):
        return found
    return _conceal(mover, policy, found, wish)


def _prepare(
    mover: Mover, policy: Policy, server_id: str, wish: Wish
) -> Answer | _Prepared:
    """Look at everything that may keep a server from being moved."""
    try:
        server = mover.look(server_id)
    except MovingError as e:
        return Answer(Result.EXCLUDED, str(e))
    if server is None:
        return Answer(Result.EXCLUDED, "it is unknown")
    if is_concealed(server):
        return Answer(Result.MOVED)
    reason = exclusions.excluded(server, wish.credentials, policy)
    reason = (
        reason or _changed(server, wish) or exclusions.crowded(mover, policy)
    )
    if reason is not None:
        return Answer(Result.EXCLUDED, reason)
    target, why = find_room(mover, policy, server_id)
    if target is None:
        return Answer(Result.FULL, why)
    record = _record(mover, server, target, wish)
    try:
        text = dump(record)
    except RecordError as e:
        return Answer(Result.EXCLUDED, str(e))
    return _Prepared(server, record, text)


def _conceal(
    mover: Mover, policy: Policy, found: _Prepared, wish: Wish
) -> Answer:
    server, record, text = found.server, found.record, found.text
    try:
        won = mover.conceal_row(server, record.target, text, wish.action_id)
    except Exception:
        LOG.warning("concealing %s failed", server.id, exc_info=True)
        won = _took_effect(mover, server.id, text)
    if not won:
        return Answer(Result.EXCLUDED, "its state has changed")
    LOG.info("server %s is concealed", server.id)
    finish.follow_up(mover, policy, record, text)
    return Answer(Result.MOVED)


def _took_effect(mover: Mover, server_id: str, text: str) -> bool:
    """Return whether a transaction whose end was not seen did its work."""
    try:
        server = mover.look(server_id)
    except MovingError:
        return False
    return server is not None and server.hidden and server.record == text


def is_concealed(server: Server) -> bool:
    """Return whether a server is hidden by us and alive."""
    if not server.hidden or server.deleted:
        return False
    try:
        record = of(server)
    except RecordError:
        return False
    return record is not None and record.kind is Kind.CONCEAL


def find_room(
    mover: Mover, policy: Policy, server_id: str
) -> tuple[Owner | None, str | None]:
    """Return the project a server can go to, or why there is none."""
    choice = policy.projects
    if policy.on_full != "next":
        choice = choice[:1]
    why: str | None = "there is no quarantine project"
    for project in choice:
        target = Owner(project, policy.user or "")
        why = mover.no_headroom(server_id, target)
        if why is None:
            return target, None
    return None, why


def _changed(server: Server, wish: Wish) -> str | None:
    for name, value in wish.seen.items():
        if getattr(server, name) != value:
            return "its state has changed"
    return None


def _record(mover: Mover, server: Server, target: Owner, wish: Wish) -> Record:
    now = mover.now().replace(microsecond=0)  # as it will be read again
    sender = Owner(
        wish.credentials.get("project_id") or "",
        wish.credentials.get("user_id") or "",
    )
    return Record(
        kind=Kind.CONCEAL,
        server_id=server.id,
        owner=server.owner,
        target=target,
        since=now,
        at=now,
        request_id=wish.request_id,
        requested_by=None if sender == server.owner else sender,
        operation=wish.operation,
        decision=wish.decision,
        rule=wish.rule,
        revision=wish.revision,
        vm_state=server.vm_state,
        task_state=server.task_state,
        running=tuple(sorted(server.running)),
        locked_by=server.locked_by,
        group=mover.group_of(server.id),
        ports=server.ports,
        volumes=server.volumes,
    )
