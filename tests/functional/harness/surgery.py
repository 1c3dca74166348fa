# SPDX-License-Identifier: Apache-2.0
"""Changes made directly in Nova's databases.

Some states last minutes or need luck on a real cloud. A test that needs one
writes it into the row, and time is made to pass by moving the dates of a
server's rows into the past. Everything else goes through Nova's API.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from nova import context, objects
from nova.db.main import api as main_db
from nova.db.main import models

_DATES = ("created_at", "updated_at", "launched_at", "start_time")
_EVENT_DATES = (*_DATES, "finish_time")


@contextlib.contextmanager
def cell_of(server_id: str) -> Iterator[Any]:
    """Give an admin context that is targeted at a server's cell."""
    admin = context.get_admin_context(read_deleted="yes")
    mapping = objects.InstanceMapping.get_by_instance_uuid(admin, server_id)
    with context.target_cell(admin, mapping.cell_mapping) as cell:
        yield cell


def execute(server_id: str, statement: Any) -> list[dict[str, Any]]:
    """Run one statement in a server's cell; return its rows, if it has any."""
    with cell_of(server_id) as cell:
        engine = main_db.get_engine(context=cell)
        with engine.begin() as connection:
            result = connection.execute(statement)
            if not result.returns_rows:
                return []
            return [dict(row) for row in result.mappings()]


def row(server_id: str) -> dict[str, Any]:
    """Return a server's row of ``instances``, deleted or hidden as it is."""
    table = models.Instance.__table__
    return execute(
        server_id, sa.select(table).where(table.c.uuid == server_id)
    )[0]


def set_row(server_id: str, **values: Any) -> None:
    """Write columns of a server's row (vm_state, task_state, host ...)."""
    table = models.Instance.__table__
    execute(
        server_id,
        sa.update(table).where(table.c.uuid == server_id).values(**values),
    )


def actions(server_id: str) -> list[dict[str, Any]]:
    """Return the rows of ``instance_actions``, oldest first."""
    table = models.InstanceAction.__table__
    return execute(
        server_id,
        sa.select(table)
        .where(table.c.instance_uuid == server_id)
        .order_by(table.c.id),
    )


def events(server_id: str) -> list[dict[str, Any]]:
    """Return the rows of ``instance_actions_events``, oldest first."""
    table = models.InstanceActionEvent.__table__
    ids = [action["id"] for action in actions(server_id)]
    return execute(
        server_id,
        sa.select(table)
        .where(table.c.action_id.in_(ids))
        .order_by(table.c.id),
    )


def make_older(server_id: str, **ago: float) -> None:
    """Let time pass for one server: move all its dates into the past.

    :param ago: arguments of ``datetime.timedelta``, such as ``minutes=61``
    """
    by = datetime.timedelta(**ago)
    for found in (row(server_id),):
        set_row(server_id, **_moved(found, _DATES, by))
    for model, rows in (
        (models.InstanceAction, actions(server_id)),
        (models.InstanceActionEvent, events(server_id)),
    ):
        table = model.__table__
        for found in rows:
            execute(
                server_id,
                sa.update(table)
                .where(table.c.id == found["id"])
                .values(**_moved(found, _EVENT_DATES, by)),
            )


def _moved(
    found: dict[str, Any], names: tuple[str, ...], by: datetime.timedelta
) -> dict[str, Any]:
    """Return the dates of a row, moved.

    ``updated_at`` is set by SQLAlchemy at every update unless it is named.
    """
    return {
        name: found[name] - by if found[name] is not None else None
        for name in names
        if name in found
    }
