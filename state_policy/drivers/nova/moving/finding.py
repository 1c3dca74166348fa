# SPDX-License-Identifier: Apache-2.0
"""Finds the servers that are in quarantine, half way, or wait for a delete.

Cells are asked in parallel, and one that does not answer in its budget is
given up (:mod:`state_policy.drivers.nova.cells`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa
from nova import objects
from nova.db.main import models
from oslo_utils import timeutils

from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.moving import contexts, registry, rows
from state_policy.engine.ports.moving import Listing, Owner, PendingDelete

LOG = logging.getLogger(__name__)

#: Seconds that a cell has for a list; no index helps to find hidden rows.
BUDGET = 20.0

#: So many ids go into one query.
_CHUNK = 500

T = TypeVar("T")

_ROW = models.Instance
#: Instance actions that a request to delete leaves. Nova 34 writes ``delete``
#: for forceDelete too.
_DELETES = {"delete": "delete", "forceDelete": "force_delete"}


def held(cells: Cells, projects: Sequence[str]) -> Listing:
    """Return every server that is, or may be, in quarantine."""
    wanted = tuple(projects)
    mapped = [server_id for server_id, _ in registry.mapped_to(wanted)]
    found, unseen = _gather(
        cells, lambda cell: _held_in(cell, wanted, mapped), BUDGET
    )
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


def overdue(cells: Cells, projects: Sequence[str], seconds: float) -> bool:
    """Return whether a server is seen that has been concealed for longer.

    Asked in requests. What a silent cell holds does not count: one cell that
    is down must not end the quarantine in all others.
    """
    old = [i for i, _ in registry.mapped_before(tuple(projects), seconds)]
    if not old:
        return False
    found, _ = _gather(cells, lambda cell: _hidden_among(cell, old))
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
    cells: Cells, projects: Sequence[str], older_than: float
) -> tuple[PendingDelete, ...]:
    """Return deletes that have been accepted for so many seconds."""
    wanted = tuple(projects)
    found, _ = _gather(cells, lambda cell: _pending_in(cell, wanted), BUDGET)
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
    cells: Cells, function: Callable[[Any], T], budget: float | None = None
) -> tuple[list[T], tuple[str, ...]]:
    """Ask every cell; return the answers and the names of the silent."""
    context = contexts.admin()
    mappings = list(objects.CellMappingList.get_all(context))
    answers = cells.each(mappings, function, context, budget)
    silent = []
    for mapping in mappings:
        if mapping.uuid in answers.failed:
            name = mapping.name or mapping.uuid
            LOG.warning("cell %s: %s", name, answers.failed[mapping.uuid])
            silent.append(f"cell {name}")
    return list(answers.found.values()), tuple(sorted(silent))


def _chunks(ids: Sequence[str]) -> Iterator[Iterable[str]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
