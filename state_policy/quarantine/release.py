# SPDX-License-Identifier: Apache-2.0
"""Giving a server back to its owner.

The record is written first, so that a sweep that comes upon the half of it
goes on in this direction. Then the stores in reverse: placement, API
database, row.
"""

from __future__ import annotations

import logging

from state_policy.engine.ports.moving import (
    Looking,
    Mover,
    OvertakenError,
    Server,
)
from state_policy.quarantine import finish, purge
from state_policy.quarantine.record import Kind, Record, dump

LOG = logging.getLogger(__name__)


def release(mover: Mover, server: Server, record: Record) -> None:
    """Give a server back, or go on with it.

    :param server: as it was seen
    :param record: its newest record then
    :raises OvertakenError: where somebody else has gone on with it since
    """
    text = server.record or ""
    if record.kind is not Kind.RELEASE:
        record = record.next(Kind.RELEASE, mover.now())
        text = dump(record)
        mover.write_record(server.id, record.owner, text, server.record)
    _finish(mover, record, text)


def _finish(mover: Mover, record: Record, text: str) -> None:
    """Do what a release still lacks; every step can be repeated.

    Whoever does the same at the same time may be done long before, and the
    server may be concealed again by then: so each look is at what is now.
    It is told before the last step: a sweep repeats what has not ended, and
    what has ended nobody looks at. So where the row is back it was told.
    """
    server_id = record.server_id
    finish.charge(mover, record)
    going = _give(mover, record, text)
    if not _is_back(_expected(mover, record, text), record):
        finish.tell(mover, "release", record)
    mover.return_row(server_id, record.owner, record.locked_by, text)
    if not going and _going(mover.look(server_id)):
        # A purge sent its delete just before the record was written.
        mover.give(server_id, record.owner, deleted=True)
    LOG.info("server %s is its owner's again", server_id)


def _give(mover: Mover, record: Record, text: str) -> bool:
    """Make the API database name the owner.

    :returns: whether the server is being deleted. Compute calls that off for
        nobody, and what is going is not counted as its owner's
    """
    going = _going(_expected(mover, record, text))
    mover.give(
        record.server_id,
        record.owner,
        join_group=record.group,
        deleted=going,
    )
    try:
        _expected(mover, record, text)
    except OvertakenError:
        now = finish.newest(mover, record.server_id)
        if now is not None and now.holder != record.owner:
            finish.give_away(mover, now)
        raise
    return going


def _expected(mover: Mover, record: Record, text: str) -> Server | None:
    """Return a server as it is now, while a record is its newest.

    :raises OvertakenError: where it is not
    """
    server = mover.look(record.server_id)
    if server is not None and server.record != text:
        raise OvertakenError(f"somebody has gone on with server {server.id}")
    return server


def _is_back(server: Server | None, record: Record) -> bool:
    return (
        server is not None
        and not server.hidden
        and server.owner.project_id == record.owner.project_id
    )


def _going(server: Server | None) -> bool:
    return server is None or server.deleted or purge.going(server)


def caveat(mover: Looking, server: Server, record: Record) -> str:
    """Return what is to be said of a release beside why; often nothing."""
    said = ", but its delete is under way" if purge.going(server) else ""
    return said + _about_group(mover, record)


def _about_group(mover: Looking, record: Record) -> str:
    """Return what is wrong with its group.

    The server becomes a member of its group again whatever that means for
    the others: what it was is its owner's to change.
    """
    if record.group is None:
        return ""
    try:
        wrong = mover.group_broken(record.server_id, record.group)
    except Exception:
        LOG.warning(
            "the group of %s cannot be read", record.server_id, exc_info=True
        )
        wrong = "its server group could not be read"
    if wrong is None:
        return ""
    LOG.warning("server %s is released, but %s", record.server_id, wrong)
    return f", but {wrong}"


def give_back_deleted(mover: Mover, server: Server, record: Record) -> None:
    """End the move of a server that was deleted meanwhile.

    Compute's clean-up passes hidden rows, so the row is shown; mapping and
    request spec follow the row, which is still its owner's. With the mapping
    it has ended for the sweep, so it is told before.
    """
    if server.hidden:
        mover.show_deleted_row(server.id)
    finish.tell(mover, "deleted", record)
    mover.give(server.id, record.owner, deleted=True)
    LOG.info("server %s was deleted while it was concealed", server.id)
