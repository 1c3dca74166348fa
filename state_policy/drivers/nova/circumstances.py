# SPDX-License-Identifier: Apache-2.0
"""What an explanation may add: since when, by which action, why locked.

Nothing here goes beyond what the caller could ask Nova itself: each part is
told only where Nova's policy lets the caller read it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from nova.db.main import models

from state_policy.drivers.nova import server as servers
from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.facts import actions, changing, history
from state_policy.drivers.nova.facts.history import Action, History
from state_policy.drivers.nova.facts.source import age
from state_policy.drivers.nova.once import Once
from state_policy.drivers.nova.rights import Rights
from state_policy.drivers.nova.server import Server
from state_policy.engine.facts import Age
from state_policy.engine.ports.reading import (
    Caller,
    Circumstances,
    Location,
)

SHOW = "os_compute_api:servers:show"
LIST_ACTIONS = "os_compute_api:os-instance-actions:list"

_ITEMS = models.InstanceSystemMetadata.__table__
_SELECT_REASON = sa.select(_ITEMS.c.value).where(
    _ITEMS.c.instance_uuid == sa.bindparam("server"),
    _ITEMS.c.key == "locked_reason",
    _ITEMS.c.deleted == 0,
)


class Surroundings:
    """Reads circumstances: at most five SELECTs, on refusals only."""

    def __init__(self, cells: Cells, rights: Rights, once: Once) -> None:
        self._cells = cells
        self._rights = rights
        self._once = once

    def read(self, caller: Caller, location: Location) -> Circumstances:
        """Return what may be told; empty where nothing can be read."""
        try:
            if location.handle.cell is None:
                return _of_build_request(location)
            return self._of_server(caller, location)
        except Exception as error:  # noqa: BLE001 empty, by contract
            self._once.warn("cannot read circumstances", error)
            return Circumstances()

    def _of_server(self, caller: Caller, location: Location) -> Circumstances:
        shown = self._rights.may(caller, location, SHOW)
        listed = self._rights.may(caller, location, LIST_ACTIONS)
        server, found, since, reason = location.handle.read(
            self._cells, lambda c: _read(c, location)
        )
        if server is None:
            return Circumstances()
        action = _named(server, found) if listed else None
        return Circumstances(
            since=since if shown else None,
            action=action.name if action else None,
            request_id=action.request_id if action else None,
            locked_reason=reason if shown else None,
        )


def _read(
    connection: Any, location: Location
) -> tuple[Server | None, History, float | None, str | None]:
    server = location.handle.take() or servers.load(
        connection, location.server_id
    )
    if server is None:
        return None, History(), None, None
    reason = None
    if server.locked:
        reason = connection.execute(
            _SELECT_REASON, {"server": server.uuid}
        ).scalar()
    found = history.load(connection, server.uuid)
    failed = history.failed_at(connection, server)
    since = _seconds(actions.state_age(server, found, failed))
    return server, found, since, reason


def _of_build_request(location: Location) -> Circumstances:
    found = servers.load_build_request(location.server_id)
    created = age(found[0].created_at) if found else None
    return Circumstances(since=created.seconds if created else None)


def _seconds(age: Age | None) -> float | None:
    """Return a length of time that can be told, not a lower bound."""
    return age.seconds if age is not None and age.exact else None


def _named(server: Server, found: History) -> Action | None:
    """Return the action that made the state, or the last that made one."""
    return actions.current(server, found) or found.last(changing.CHANGING)
