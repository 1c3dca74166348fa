# SPDX-License-Identifier: Apache-2.0
"""One server as its row in a cell, or its build request, has it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa
from nova import context as nova_context
from nova import exception
from nova.db.main import models
from nova.objects import build_request


@dataclass(frozen=True, slots=True)
class Server:
    """The columns of ``instances`` that facts are made from.

    Times are UTC without a zone, as the database has them.
    """

    uuid: str
    project_id: str
    user_id: str | None
    vm_state: str | None = None
    task_state: str | None = None
    power_state: int | None = None
    host: str | None = None
    node: str | None = None
    created_at: datetime.datetime | None = None
    updated_at: datetime.datetime | None = None
    launched_at: datetime.datetime | None = None
    locked: bool | None = None
    locked_by: str | None = None
    disable_terminate: bool | None = None
    image_ref: str | None = None
    availability_zone: str | None = None


_NAMES = tuple(field.name for field in fields(Server))
_TABLE = models.Instance.__table__
_SELECT = sa.select(*(_TABLE.c[name] for name in _NAMES)).where(
    _TABLE.c.uuid == sa.bindparam("server"), _TABLE.c.deleted == 0
)


def load(connection: Any, server_id: str) -> Server | None:
    """Read a server's row: one SELECT. None where it is deleted."""
    row = connection.execute(_SELECT, {"server": server_id}).first()
    return None if row is None else Server(*row)


def load_build_request(server_id: str) -> tuple[Server, Any] | None:
    """Read a build request: one SELECT in the API database.

    :returns: the server and Nova's BuildRequest object, or None where the
        request is gone: the server has reached a cell, or was deleted
    """
    context = nova_context.get_admin_context()
    try:
        request = build_request.BuildRequest.get_by_instance_uuid(
            context, server_id
        )
    except exception.BuildRequestNotFound:
        return None
    instance = request.instance
    values = {name: _attribute(instance, name) for name in _NAMES}
    return Server(**values), request


def _attribute(instance: Any, name: str) -> Any:
    # Much of a build request's instance is unset, and reading that raises.
    if not instance.obj_attr_is_set(name):
        return None
    value = getattr(instance, name)
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return value
