# SPDX-License-Identifier: Apache-2.0
"""Reads Nova's databases: the API's, and those of the cells.

A cell is read in the thread pool that Nova itself reads cells with
(``nova.context.scatter_gather_cells``), so that one that hangs costs a bounded
time. No statement here writes, and none goes through Nova's objects.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.objects import cell_mapping
from oslo_db import exception as db_exception

T = TypeVar("T")

#: Seconds that a cell has for its answer.
BUDGET = 5.0

#: Seconds for which a cell that did not answer in time is not asked again.
PAUSE = 10.0


class CellDownError(Exception):
    """A cell refused the connection or did not answer in its budget."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of ``cell_mappings``. Holds passwords: never printed."""

    id: int
    uuid: str
    name: str | None = None
    database_connection: str = field(default="", repr=False)
    transport_url: str = field(default="", repr=False)
    disabled: bool = False

    def mapping(self) -> Any:
        """Return Nova's object for this cell, with its URLs filled in."""
        context = nova_context.get_admin_context()
        values = {name: getattr(self, name) for name in self.__slots__}
        values.update(created_at=None, updated_at=None)
        return cell_mapping.CellMapping._from_db_object(
            context, cell_mapping.CellMapping(), values
        )


@dataclass(frozen=True, slots=True)
class _Failed:
    error: Exception


def read_api(read: Callable[[Any], T]) -> T:
    """Read the API database.

    :param read: gets an open SQLAlchemy connection
    :raises Exception: whatever the database raises
    """
    context = nova_context.get_admin_context()
    with api_db.context_manager.reader.connection.using(context) as connection:
        return read(connection)


class Cells:
    """Reads cells, each in a budget of time.

    :param budget: seconds for one reading
    :param pause: seconds for which a cell that hung is taken for down
    """

    def __init__(self, budget: float = BUDGET, pause: float = PAUSE) -> None:
        self._budget = budget
        self._pause = pause
        self._lock = threading.Lock()
        self._hung: dict[str, float] = {}

    def read(self, cell: Cell, read: Callable[[Any], T]) -> T:
        """Read one cell's database.

        :param read: gets an open SQLAlchemy connection
        :raises CellDownError: the cell does not answer
        :raises Exception: whatever ``read`` raises beside that
        """
        self._refuse_hung(cell)
        found = nova_context.scatter_gather_cells(
            nova_context.get_admin_context(),
            [cell.mapping()],
            self._budget,
            _in_cell,
            read,
        )[cell.uuid]
        if found is nova_context.did_not_respond_sentinel:
            with self._lock:
                self._hung[cell.uuid] = time.monotonic()
            raise CellDownError(f"no answer in {self._budget} s")
        if isinstance(found, Exception):
            found = _Failed(found)
        if isinstance(found, _Failed):
            raise _told(found.error)
        result: T = found
        return result

    def _refuse_hung(self, cell: Cell) -> None:
        with self._lock:
            since = self._hung.get(cell.uuid)
            if since is None:
                return
            if time.monotonic() - since >= self._pause:
                del self._hung[cell.uuid]
                return
        raise CellDownError("did not answer a moment ago")


def _in_cell(context: Any, read: Callable[[Any], Any]) -> Any:
    # Exceptions are handed back as values: Nova logs a traceback for each
    # that is raised.
    manager = main_db.get_context_manager(context)
    try:
        with manager.reader.connection.using(context) as connection:
            return read(connection)
    except Exception as error:  # noqa: BLE001 raised again by the caller
        return _Failed(error)


def is_down(error: Exception) -> bool:
    """Return whether an error says that a database does not answer."""
    return isinstance(
        error,
        (db_exception.DBConnectionError, db_exception.CantStartEngineError),
    )


def _told(error: Exception) -> Exception:
    return CellDownError(type(error).__name__) if is_down(error) else error
