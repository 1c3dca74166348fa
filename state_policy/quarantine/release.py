# SPDX-License-Identifier: Apache-2.0
"""Giving a server back to its owner.

The record is written first, so that a sweep that comes upon the half of it
goes on in this direction. Then the stores in reverse: placement, API
database, row.
"""

from __future__ import annotations

import logging

from state_policy.engine.ports.moving import Looking, Mover, Server
from state_policy.quarantine import finish, purge
from state_policy.quarantine.record import Kind, Record, dump

LOG = logging.getLogger(__name__)


def release(mover: Mover, server: Server, record: Record) -> None:
    """Give a server back, or go on with it.

    :param record: its newest record
    """
    if record.kind is not Kind.RELEASE:
        record = record.next(Kind.RELEASE, mover.now())
        mover.write_record(server.id, record.owner, dump(record))
    finish_release(mover, record, purge.going(server))


def finish_release(mover: Mover, record: Record, going: bool) -> None:
    """Do what a release still lacks; every step can be repeated.

    :param going: whether the server is being deleted. Compute calls that off
        for nobody, and what is going is not counted as its owner's
    """
    mover.charge(record.server_id, record.owner)
    mover.give(
        record.server_id,
        record.owner,
        join_group=record.group,
        deleted=going,
    )
    mover.return_row(record.server_id, record.owner, record.locked_by)
    finish.tell(mover, "release", record)
    LOG.info("server %s is its owner's again", record.server_id)


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
    request spec follow the row, which is still its owner's.
    """
    if server.hidden:
        mover.show_deleted_row(server.id)
    mover.give(server.id, record.owner, deleted=True)
    finish.tell(mover, "deleted", record)
    LOG.info("server %s was deleted while it was concealed", server.id)
