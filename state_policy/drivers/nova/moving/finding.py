# SPDX-License-Identifier: Apache-2.0
"""Finds the servers that are in quarantine, half way, or wait for a delete.

Cells are asked in parallel, and one that does not answer in its budget is
given up (:mod:`state_policy.drivers.nova.cells`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import sqlalchemy as sa
from nova import objects
from nova.db.main import models
from oslo_utils import timeutils

from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.facts import changing
from state_policy.drivers.nova.moving import contexts, registry, rows
from state_policy.engine.ports.moving import (
    Listing,
    Owner,
    Pending,
    PendingDelete,
)

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
#: What ends an attempt to delete. A reset does here: a delete after it is of
#: whoever sent that one.
_OTHERS = sorted(changing.OTHERS | {changing.RESET})


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
) -> Pending:
    """Return deletes that have been accepted for so many seconds."""
    wanted = tuple(projects)
    found, unseen = _gather(
        cells, lambda cell: _pending_in(cell, wanted), BUDGET
    )
    latest = timeutils.utcnow() - timedelta(seconds=older_than)
    return Pending(
        tuple(one for ones in found for one in ones if one.sent <= latest),
        unseen,
    )


def _pending_in(cell: Any, projects: tuple[str, ...]) -> list[PendingDelete]:
    query = sa.select(
        _ROW.uuid, _ROW.project_id, _ROW.user_id, _ROW.locked
    ).where(
        _ROW.task_state == "deleting",
        _ROW.deleted == 0,
        _ROW.project_id.not_in(projects),
        _not_hidden(),
    )
    servers = {row.uuid: row for row in rows.select(cell, query)}
    return [
        _pending(servers[server_id], delete)
        for chunk in _chunks(sorted(servers))
        for server_id, delete in _first_deletes(cell, chunk).items()
    ]


def _pending(row: Any, delete: Any) -> PendingDelete:
    return PendingDelete(
        server_id=row.uuid,
        sender=Owner(delete.project_id or "", delete.user_id or ""),
        owner=Owner(row.project_id, row.user_id),
        operation=_DELETES[delete.action],
        request_id=delete.request_id or "",
        sent=delete.start_time,
        locked=bool(row.locked),
    )


def _first_deletes(cell: Any, server_ids: Iterable[str]) -> dict[str, Any]:
    """Return the first delete of the present attempt of each server.

    One that ended in an error is no part of what a later one began.
    """
    first: dict[str, Any] = {}
    failed: dict[str, bool] = {}
    for delete in rows.select(cell, _deletes(server_ids)):
        server_id = delete.instance_uuid
        if failed.get(server_id, True):
            first[server_id] = delete
        failed[server_id] = delete.message == "Error"
    return first


def _deletes(server_ids: Iterable[str]) -> Any:
    """Return the query for the deletes since another operation, in order.

    One query for many servers, for thousands may be deleting. Where both
    came in one second the delete is the later: it is under way.
    """
    table = models.InstanceAction.__table__
    of_servers = (
        table.c.instance_uuid.in_(list(server_ids)),
        table.c.deleted == 0,
    )
    other = (
        sa.select(
            table.c.instance_uuid, sa.func.max(table.c.created_at).label("at")
        )
        .where(*of_servers, table.c.action.in_(_OTHERS))
        .group_by(table.c.instance_uuid)
        .subquery()
    )
    return (
        sa.select(table)
        .outerjoin(other, other.c.instance_uuid == table.c.instance_uuid)
        .where(
            *of_servers,
            table.c.action.in_(sorted(_DELETES)),
            sa.or_(other.c.at.is_(None), table.c.created_at >= other.c.at),
        )
        .order_by(table.c.created_at, table.c.id)
    )


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
