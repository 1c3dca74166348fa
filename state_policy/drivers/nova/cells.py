# SPDX-License-Identifier: Apache-2.0
"""Reads Nova's databases: the API's, and those of the cells.

A cell is read in the thread pool that Nova itself reads cells with
(``nova.context.scatter_gather_cells``), so that one that hangs costs a bounded
time; one that did not answer is not asked again for a while
(:mod:`state_policy.drivers.nova.breaker`). Time limits of the database's own
would be kept too late: the first connection to a cell that is down is tried
ten times, ten seconds apart (``[database] max_retries``), and a socket without
a read timeout waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nova import context as nova_context
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.objects import cell_mapping
from oslo_db import exception as db_exception

from state_policy.drivers.nova.breaker import Attempt, Breaker, CellDownError
from state_policy.drivers.nova.context import kept

T = TypeVar("T")

#: Seconds that a cell has for its answer.
BUDGET = 5.0

#: Seconds for which a cell that did not answer is not asked again.
PAUSE = 10.0


class BusyError(Exception):
    """No thread was free to ask a cell; nothing is said of the cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of ``cell_mappings``. Holds passwords: never printed."""

    id: int
    uuid: str
    name: str | None = None
    database_connection: str = field(default="", repr=False)
    transport_url: str = field(default="", repr=False)
    disabled: bool = False

    def __str__(self) -> str:
        return self.name or self.uuid

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


@dataclass(frozen=True, slots=True)
class Answers(Generic[T]):
    """What several cells answered.

    :ivar found: by the uuid of the cell
    :ivar failed: why, by the uuid of the cell
    """

    found: Mapping[str, T]
    failed: Mapping[str, Exception]


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
    :param pause: seconds for which a cell that failed is taken for down
    """

    def __init__(self, budget: float = BUDGET, pause: float = PAUSE) -> None:
        self._budget = budget
        self._breaker = Breaker(pause)

    def read(self, cell: Cell, read: Callable[[Any], T]) -> T:
        """Read one cell's database.

        :param read: gets an open SQLAlchemy connection
        :raises CellDownError: the cell does not answer
        :raises Exception: whatever ``read`` raises beside that
        """
        return self.call(
            cell.mapping(), lambda context: connected(context, read)
        )

    def call(
        self, mapping: Any, function: Callable[[Any], T], context: Any = None
    ) -> T:
        """Have Nova's objects read from one cell.

        :param mapping: Nova's CellMapping
        :param function: gets a context that is targeted at the cell. It may
            go on after it was given up, so it must change nothing
        :param context: whose; an administrator's by default
        :raises CellDownError: the cell does not answer
        :raises Exception: whatever ``function`` raises beside that
        """
        answers = self.each([mapping], function, context)
        for error in answers.failed.values():
            raise error
        return answers.found[mapping.uuid]

    def each(
        self,
        mappings: Iterable[Any],
        function: Callable[[Any], T],
        context: Any = None,
        budget: float | None = None,
    ) -> Answers[T]:
        """Ask several cells at once; whatever fails, the others answer.

        :param mappings: Nova's CellMappings
        :param function: as of :meth:`call`
        :param budget: seconds, another than that of one reading
        """
        attempts: dict[str, Attempt] = {}
        failed: dict[str, Exception] = {}
        asked = []
        for mapping in mappings:
            try:
                attempts[mapping.uuid] = self._breaker.admit(mapping.uuid)
                asked.append(mapping)
            except CellDownError as error:
                failed[mapping.uuid] = error
        seconds = self._budget if budget is None else budget
        found: dict[str, T] = {}
        for uuid, answer in _gather(
            asked, attempts, function, context, seconds
        ).items():
            fault = _fault(answer, attempts[uuid], seconds)
            if fault is None:
                found[uuid] = answer
            else:
                failed[uuid] = fault
        return Answers(found, failed)

    def hanging(self) -> int:
        """Return how many reads were given up and have not ended."""
        return self._breaker.hanging()


def _gather(
    mappings: list[Any],
    attempts: Mapping[str, Attempt],
    function: Callable[[Any], Any],
    context: Any,
    seconds: float,
) -> Mapping[str, Any]:
    if not mappings:
        return {}
    with kept():
        found: Mapping[str, Any] = nova_context.scatter_gather_cells(
            context or nova_context.get_admin_context(),
            mappings,
            seconds,
            _in_cell,
            attempts,
            function,
        )
    return found


def _in_cell(
    context: Any,
    attempts: Mapping[str, Attempt],
    function: Callable[[Any], Any],
) -> Any:
    """Run in a thread of Nova's pool.

    Exceptions are handed back as values: Nova logs a traceback for each that
    is raised.
    """
    attempt = attempts[context.cell_uuid]
    if not attempt.begin():
        return None
    refused = False
    try:
        return function(context)
    except Exception as error:  # noqa: BLE001 raised again by the caller
        refused = is_down(error)
        return _Failed(error)
    finally:
        attempt.end(refused=refused)


def _fault(answer: Any, attempt: Attempt, seconds: float) -> Exception | None:
    """Return what went wrong, None where it is an answer."""
    if answer is nova_context.did_not_respond_sentinel:
        if attempt.give_up():
            return CellDownError(f"no answer in {seconds:g} s")
        return BusyError("no thread was free to ask a cell")
    error = answer.error if isinstance(answer, _Failed) else answer
    if not isinstance(error, Exception):
        return None
    if is_down(error):
        # Its text may have the address of the database in it.
        return CellDownError(f"it is not reachable: {type(error).__name__}")
    return error


def connected(context: Any, read: Callable[[Any], T]) -> T:
    """Read the database that a context is targeted at.

    :param read: gets an open SQLAlchemy connection
    """
    manager = main_db.get_context_manager(context)
    with manager.reader.connection.using(context) as connection:
        return read(connection)


def is_down(error: Exception) -> bool:
    """Return whether an error says that a database does not answer."""
    return isinstance(
        error,
        (db_exception.DBConnectionError, db_exception.CantStartEngineError),
    )
