# SPDX-License-Identifier: Apache-2.0
"""Deleting a server that is in quarantine.

An ordinary delete first. A server that is deleting already ignores it, so
from the second attempt on its state is reset before. A server that goes away
meanwhile is what was wanted.
"""

from __future__ import annotations

import logging

from state_policy.engine.ports.moving import GoneError, Mover, Server
from state_policy.quarantine import finish
from state_policy.quarantine.record import Kind, Record, dump

LOG = logging.getLogger(__name__)

#: Seconds that a delete has to take effect before the next attempt.
PATIENCE = 600
#: Plain delete, then twice with the state reset.
ATTEMPTS = 3


def due(server: Server, record: Record, seconds: float) -> bool:
    """Return whether the next attempt should be made now.

    :param seconds: since the last
    """
    if record.attempts >= ATTEMPTS:
        return False
    return seconds >= PATIENCE or not going(server)


def going(server: Server) -> bool:
    """Return whether compute is at its delete, as far as its row says.

    Near the end compute saves vm_state ``deleted`` and no task_state, frees
    what placement has, and only then deletes the row
    (nova.compute.manager._delete_instance, 34.0.0).
    """
    return server.task_state == "deleting" or server.vm_state == "deleted"


def purge(mover: Mover, server: Server, record: Record) -> Record:
    """Make the next attempt to delete a server; return its record.

    Its ports are taken from it first: compute deletes every port that it
    does not know to be its owner's, and it knows none once the row has
    another owner.

    :param server: as it was seen
    :param record: its newest record then
    :raises OvertakenError: where somebody else has gone on with it since; an
        operator who releases it is not to lose it
    :raises MovingError: where a port is still bound
    """
    record = record.next(Kind.PURGE, mover.now(), attempts=record.attempts + 1)
    try:
        _attempt(mover, server, record)
    except GoneError:
        LOG.info("server %s is gone already", server.id)
    else:
        LOG.info("server %s: delete, attempt %d", server.id, record.attempts)
    return record


def _attempt(mover: Mover, server: Server, record: Record) -> None:
    made = finish.made_by_compute(server, record)
    mover.release_ports(server.id, made, server.record)
    text = dump(record)
    mover.write_record(server.id, record.owner, text, server.record)
    if server.task_state == "deleting":  # it would be ignored
        mover.reset_state(server.id, record.target, text)
    mover.delete(server.id, record.target, text)
