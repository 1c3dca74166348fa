# SPDX-License-Identifier: Apache-2.0
"""Finds a server by the id of a request: one SELECT in the API database."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa
from nova.db.api import models
from oslo_db import exception as db_exception
from oslo_utils import uuidutils

from state_policy.drivers.nova import cells
from state_policy.drivers.nova.cells import BusyError, Cell, Cells
from state_policy.drivers.nova.server import Server
from state_policy.engine.ports.reading import Location

_MAPPINGS = models.InstanceMapping.__table__
_CELLS = models.CellMapping.__table__
_REQUESTS = models.BuildRequest.__table__

# The build request rides along: whether there is one decides what a mapping
# without a cell means.
_SELECT = (
    sa.select(
        _MAPPINGS.c.instance_uuid,
        _MAPPINGS.c.project_id,
        _MAPPINGS.c.user_id,
        _MAPPINGS.c.queued_for_delete,
        _REQUESTS.c.id.label("request_id"),
        _CELLS.c.id,
        _CELLS.c.uuid,
        _CELLS.c.name,
        _CELLS.c.database_connection,
        _CELLS.c.transport_url,
        _CELLS.c.disabled,
    )
    .select_from(
        _MAPPINGS.outerjoin(
            _CELLS, _CELLS.c.id == _MAPPINGS.c.cell_id
        ).outerjoin(
            _REQUESTS, _REQUESTS.c.instance_uuid == _MAPPINGS.c.instance_uuid
        )
    )
    .where(_MAPPINGS.c.instance_uuid == sa.bindparam("server"))
)

#: What is written in these and is no id names no server, whatever the
#: database's collation takes for the same. Of all else it has the say.
_WRITTEN = re.compile(r"[0-9A-Za-z-]*")

#: Seconds for which a row that was read for one purpose serves another.
FRESH = 1.0

#: What oslo.db itself tries again where it is told to (``oslo_db.api``,
#: ``wrap_db_retry``): deadlocks, connections that are gone.
_PASSING = (
    db_exception.DBConnectionError,
    db_exception.DBDeadlock,
    db_exception.RetryRequest,
)

T = TypeVar("T")


class Handle:
    """What the driver keeps with a location.

    :ivar cell: None for a server that is only a build request
    :ivar queued_for_delete: Nova's word that a delete was accepted once
    """

    def __init__(self, cell: Cell | None, queued_for_delete: bool) -> None:
        self.cell = cell
        self.queued_for_delete = queued_for_delete
        self._lock = threading.Lock()
        self._seen: tuple[float, Server, bool] | None = None
        self._busy: float | None = None

    def __repr__(self) -> str:
        return f"Handle({self.cell!r})"

    def keep(self, server: Server, *, used: bool = False) -> None:
        """Keep a row just read.

        :param used: facts were made from it; whoever asks for facts again
            waits for a change and must be given a new row
        """
        with self._lock:
            self._seen = (time.monotonic(), server, used)

    def peek(self) -> Server | None:
        """Return the row kept, while it is fresh, for judging rights."""
        with self._lock:
            seen = self._seen
        return None if seen is None or _stale(seen[0]) else seen[1]

    def take(self) -> Server | None:
        """Return the row kept, once, while it is fresh, for facts."""
        with self._lock:
            seen = self._seen
            if seen is None or seen[2] or _stale(seen[0]):
                return None
            self._seen = (seen[0], seen[1], True)
        return seen[1]

    def read(self, reader: Cells, read: Callable[[Any], T]) -> T:
        """Read the server's cell.

        One request reads several times, the more so where a refusal is
        explained. Where no thread was free a moment ago each of them would
        wait as long as the first, and in vain.

        :param read: as of :meth:`Cells.read`
        :raises LookupError: it is in none
        :raises BusyError: no thread is free, or was a moment ago
        :raises Exception: what :meth:`Cells.read` raises beside that
        """
        if self.cell is None:
            raise LookupError("the server is in no cell")
        with self._lock:
            busy = self._busy
        if busy is not None and not _stale(busy):
            raise BusyError("no thread was free a moment ago")
        try:
            return reader.read(self.cell, read)
        except BusyError:
            with self._lock:
                self._busy = time.monotonic()
            raise


def _stale(since: float) -> bool:
    return time.monotonic() - since > FRESH


def locate(server_id: str) -> Location | None:
    """Find a server; None where Nova would find none.

    The id is looked up as it is given: whether capitals find a server, or
    letters with accents, is the database's matter, as in Nova. A mapping
    without a cell and without a build request is read once more, as Nova
    does: the server may have reached its cell in between.

    :raises Exception: whatever the database raises, and what passes by itself
        only if it does so twice
    """
    if _WRITTEN.fullmatch(server_id) and not uuidutils.is_uuid_like(server_id):
        return None
    try:
        row = _tried(server_id)
    except ValueError:
        if "\0" not in server_id:
            raise
        # PostgreSQL has no such text, so no such server.
        return None
    if row is not None and _homeless(row):
        row = _tried(server_id)
    if row is None or _homeless(row):
        return None
    return _location(row)


def _tried(server_id: str) -> Any:
    try:
        return _row(server_id)
    except _PASSING:
        return _row(server_id)


def _row(server_id: str) -> Any:
    return cells.read_api(
        lambda connection: connection.execute(
            _SELECT, {"server": server_id}
        ).first()
    )


def _homeless(row: Any) -> bool:
    return row.id is None and row.request_id is None


def _location(row: Any) -> Location:
    cell = None
    if row.id is not None:
        cell = Cell(
            row.id,
            row.uuid,
            row.name,
            row.database_connection,
            row.transport_url,
            bool(row.disabled),
        )
    return Location(
        server_id=row.instance_uuid,
        project_id=row.project_id,
        user_id=row.user_id,
        build_request=cell is None,
        handle=Handle(cell, bool(row.queued_for_delete)),
    )
