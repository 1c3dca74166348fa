# SPDX-License-Identifier: Apache-2.0
"""Deleting a server that is in quarantine.

An ordinary delete first. A server that is deleting already ignores it, so
from the second attempt on its state is reset before.
"""

from __future__ import annotations

import logging

from state_policy.engine.ports.moving import Mover, Server
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
    return server.task_state != "deleting" or seconds >= PATIENCE


def purge(mover: Mover, server: Server, record: Record) -> Record:
    """Make the next attempt to delete a server; return its record.

    Its ports are taken from it first: compute deletes every port that it
    does not know to be its owner's, and it knows none once the row has
    another owner.
    """
    mover.release_ports(server.id, finish.made_by_compute(server, record))
    ignored = server.task_state == "deleting"
    record = record.next(Kind.PURGE, mover.now(), attempts=record.attempts + 1)
    mover.write_record(server.id, record.owner, dump(record))
    if ignored:
        mover.reset_state(server.id, record.target)
    mover.delete(server.id, record.target)
    LOG.info("server %s: delete, attempt %d", server.id, record.attempts)
    return record
