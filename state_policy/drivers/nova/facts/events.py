# SPDX-License-Identifier: Apache-2.0
"""Facts from the action events: what runs, and for how long.

Events are those of nova.compute.manager (``wrap_instance_event``) and
nova.conductor.manager (``EventReporter``), 34.0.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from nova.db.main import models

from state_policy.drivers.nova.facts.source import Source, age
from state_policy.drivers.nova.server import Server

_ACTIONS = models.InstanceAction.__table__
_EVENTS = models.InstanceActionEvent.__table__

_SELECT = (
    sa.select(_ACTIONS.c.action, _EVENTS.c.event, _EVENTS.c.start_time)
    .select_from(_ACTIONS.join(_EVENTS, _EVENTS.c.action_id == _ACTIONS.c.id))
    .where(_ACTIONS.c.instance_uuid == sa.bindparam("server"))
    .where(_ACTIONS.c.deleted == 0)
    .where(_EVENTS.c.finish_time.is_(None))
)

BUILD = "compute__do_build_and_run_instance"
TERMINATE = frozenset(
    {"compute_terminate_instance", "compute_soft_delete_instance"}
)


def runs(server: Server, event: str | None) -> bool:
    """Return whether an unfinished event can still be going on.

    A compute service that dies leaves its event unfinished for ever. A build
    goes on only while the server is building, a delete only while deleting.
    """
    if event == BUILD:
        return server.vm_state == "building"
    if event in TERMINATE:
        return server.task_state in ("deleting", "soft-deleting")
    return True


def _facts(connection: Any, server: Server) -> Mapping[str, Any]:
    rows = [
        row
        for row in connection.execute(_SELECT, {"server": server.uuid})
        if runs(server, row.event)
    ]
    starts = [row.start_time for row in rows if row.start_time is not None]
    return {
        "server.running": frozenset(row.action for row in rows) or None,
        "server.running_age": age(min(starts)) if starts else None,
    }


SOURCE = Source(frozenset({"server.running", "server.running_age"}), _facts)
