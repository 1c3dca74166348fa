# SPDX-License-Identifier: Apache-2.0
"""Finds the servers that are in quarantine, half way, or wait for a delete.

Cells are asked in parallel with Nova's own scatter-gather, which gives up a
cell that does not answer in its budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from nova import context as nova_context
from nova import objects
from nova.db.main import models
from oslo_utils import timeutils

from state_policy.drivers.nova.moving import contexts, registry, rows
from state_policy.engine.ports.moving import Listing, Owner, PendingDelete

#: Seconds that a cell has to answer.
BUDGET = 10

#: So many ids go into one query.
_CHUNK = 500

T = TypeVar("T")

_ROW = models.Instance
#: Instance actions that a request to delete leaves. Nova 34 writes ``delete``
#: for forceDelete too.
_DELETES = {"delete": "delete", "forceDelete": "force_delete"}


def held(projects: Sequence[str]) -> Listing:
    """Return every server that is, or may be, in quarantine."""
    wanted = tuple(projects)
    mapped = [server_id for server_id, _ in registry.mapped_to(wanted)]
    found, unseen = _gather(lambda cell: _held_in(cell, wanted, mapped))
    return Listing(tuple(sorted({i for ids in found for i in ids})), unseen)


def _held_in(
    cell: Any, projects: tuple[str, ...], mapped: list[str]
) -> list[str]:
    found = [row.uuid for row in rows.select(cell, _in_projects(projects))]
    found += [row.uuid for row in rows.select(cell, _hidden_by_us())]
    for chunk in _chunks(mapped):
        query = sa.select(_ROW.uuid).where(
            _ROW.uuid.in_(chunk),
            # Gone for good: deleted as a server of the quarantine project.
            sa.not_(
                sa.and_(
                    _ROW.deleted != 0,
                    _ROW.project_id.in_(projects),
                    _not_hidden(),
                )
            ),
        )
        found += [row.uuid for row in rows.select(cell, query)]
    return found


def _in_projects(projects: tuple[str, ...]) -> Any:
    return sa.select(_ROW.uuid).where(
        _ROW.project_id.in_(projects), _ROW.deleted == 0
    )


def _hidden_by_us() -> Any:
    """Return the query for hidden rows that have a record of ours.

    Nova hides rows too, while it moves a server to another cell.
    """
    action, event = models.InstanceAction, models.InstanceActionEvent
    ours = (
        sa.select(event.id)
        .join(action, action.id == event.action_id)
        .where(action.instance_uuid == _ROW.uuid, event.event == rows.EVENT)
        .exists()
    )
    return sa.select(_ROW.uuid).where(_ROW.hidden == sa.true(), ours)


def _not_hidden() -> Any:
    return sa.or_(_ROW.hidden.is_(None), _ROW.hidden == sa.false())


def overdue(projects: Sequence[str], seconds: float) -> bool:
    """Return whether a server has been concealed for longer."""
    old = [i for i, _ in registry.mapped_before(tuple(projects), seconds)]
    if not old:
        return False
    found, _ = _gather(lambda cell: _hidden_among(cell, old))
    return any(found)


def _hidden_among(cell: Any, server_ids: list[str]) -> bool:
    return any(
        rows.select(
            cell,
            sa.select(_ROW.id)
            .where(
                _ROW.uuid.in_(chunk),
                _ROW.hidden == sa.true(),
                _ROW.deleted == 0,
            )
            .limit(1),
        )
        for chunk in _chunks(server_ids)
    )


def pending_deletes(
    projects: Sequence[str], older_than: float
) -> tuple[PendingDelete, ...]:
    """Return deletes that have been accepted for so many seconds."""
    wanted = tuple(projects)
    found, _ = _gather(lambda cell: _pending_in(cell, wanted))
    now = timeutils.utcnow()
    return tuple(
        pending
        for pendings in found
        for pending, began in pendings
        if (now - began).total_seconds() >= older_than
    )


def _pending_in(
    cell: Any, projects: tuple[str, ...]
) -> list[tuple[PendingDelete, Any]]:
    query = sa.select(
        _ROW.uuid, _ROW.project_id, _ROW.user_id, _ROW.locked
    ).where(
        _ROW.task_state == "deleting",
        _ROW.deleted == 0,
        _ROW.project_id.not_in(projects),
        _not_hidden(),
    )
    return [
        pending
        for row in rows.select(cell, query)
        if (pending := _first_delete(cell, row)) is not None
    ]


def _first_delete(cell: Any, row: Any) -> tuple[PendingDelete, Any] | None:
    """Return the first delete since another operation, and when it began."""
    first = None
    for action in rows.actions(cell, row.uuid):
        if action.action not in _DELETES:
            break
        first = action
    if first is None:
        return None
    pending = PendingDelete(
        server_id=row.uuid,
        sender=Owner(first.project_id or "", first.user_id or ""),
        owner=Owner(row.project_id, row.user_id),
        operation=_DELETES[first.action],
        request_id=first.request_id or "",
        locked=bool(row.locked),
    )
    return pending, first.start_time


def _gather(
    function: Callable[[Any], T],
) -> tuple[list[T], tuple[str, ...]]:
    """Ask every cell; return the answers and the names of the silent."""
    context = contexts.admin()
    cells = objects.CellMappingList.get_all(context)
    names = {cell.uuid: cell.name or cell.uuid for cell in cells}
    answers = nova_context.scatter_gather_cells(
        context, cells, BUDGET, function
    )
    found, silent = [], []
    for uuid, answer in answers.items():
        if nova_context.is_cell_failure_sentinel(answer):
            silent.append(names[uuid])
        else:
            found.append(answer)
    return found, tuple(sorted(silent))


def _chunks(ids: Sequence[str]) -> Iterator[Iterable[str]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
