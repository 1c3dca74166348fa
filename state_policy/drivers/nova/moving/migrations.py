# SPDX-License-Identifier: Apache-2.0
"""Migrations of a server, by which its owner would still see it.

Nova lists them by the project in their rows (``GET /os-migrations``), and a
row keeps its project whatever becomes of the server. So those of the owner's
project go where the server goes, and come back with it. Nothing but that list
looks at the project (nova.db.main.api, 34.0.0), no operation that runs does.

Each function is a part of a transaction that has changed the server's row.
Which rows they were is kept in events of ours beside the record, by their
uuid: a server that goes to another cell gets new rows there, with new ids
(nova.conductor.tasks.cross_cell_migrate, 34.0.0). Old rows may have none.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from nova.db.main import models

#: The event that tells the uuids, or ids, of migrations that were taken.
EVENT = "state_policy_migrations"

#: So many go into one event: its column holds 65535 bytes.
_PART = 1500

_ROW = models.Migration


def take(cell: Any, server_id: str, project_id: str, to: str) -> list[str]:
    """Give the migrations that a project has of a server to another.

    :returns: texts of the events to be kept; none where there was nothing
    """
    query = (
        sa.select(_ROW.uuid, _ROW.id)
        .where(_ROW.instance_uuid == server_id, _ROW.project_id == project_id)
        .order_by(_ROW.id)
    )
    names = [uuid or id_ for uuid, id_ in cell.session.execute(query)]
    parts = [names[at : at + _PART] for at in range(0, len(names), _PART)]
    for part in parts:
        _set_project(cell, server_id, part, to)
    return [json.dumps(part, separators=(",", ":")) for part in parts]


def give_back(cell: Any, server_id: str, project_id: str) -> None:
    """Give a project back what was taken from it, however often it was."""
    action, event = models.InstanceAction, models.InstanceActionEvent
    query = (
        sa.select(event.traceback)
        .join(action, action.id == event.action_id)
        .where(action.instance_uuid == server_id, event.event == EVENT)
    )
    for text in cell.session.execute(query).scalars().all():
        _set_project(cell, server_id, json.loads(text), project_id)


def _set_project(
    cell: Any, server_id: str, names: Sequence[int | str], project_id: str
) -> None:
    """Change rows; compute goes by the time of their last change.

    A server that went to another cell left its old migrations there, so an
    id alone may be that of another server's.

    :param names: uuids, and the ids of rows without
    """
    uuids = [name for name in names if isinstance(name, str)]
    ids = [name for name in names if isinstance(name, int)]
    cell.session.execute(
        sa.update(_ROW)
        .where(
            _ROW.instance_uuid == server_id,
            sa.or_(_ROW.uuid.in_(uuids), _ROW.id.in_(ids)),
        )
        .values(project_id=project_id, updated_at=_ROW.updated_at)
        .execution_options(synchronize_session=False)
    )
