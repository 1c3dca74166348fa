# SPDX-License-Identifier: Apache-2.0
"""Contexts of Nova for what is done to a server, and its cell.

Nova keeps the context of the request in a thread-local store, from which the
log has the request's id and its user. That one stays: every context here is
made with ``overwrite=False``, and what targeting a cell puts there is taken
back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nova import context as nova_context
from nova import exception, objects

from state_policy.drivers.nova.context import kept
from state_policy.engine.ports.moving import GoneError, MovingError, Owner


def admin(read_deleted: str = "yes") -> Any:
    """Return a context that sees every project, deleted rows too."""
    return nova_context.get_admin_context(read_deleted=read_deleted)


def acting(owner: Owner, request_id: str | None = None) -> Any:
    """Return an administrator's context in a project.

    With a project: compute puts the events of a context without one to the
    newest action, whoever's that is.
    """
    return nova_context.RequestContext(
        user_id=owner.user_id,
        project_id=owner.project_id,
        roles=["admin"],
        is_admin=True,
        overwrite=False,
        request_id=request_id,
    )


def member(owner: Owner, request_id: str | None = None) -> Any:
    """Return the context of a plain member of a project."""
    return nova_context.RequestContext(
        user_id=owner.user_id,
        project_id=owner.project_id,
        roles=["member", "reader"],
        is_admin=False,
        overwrite=False,
        request_id=request_id,
    )


def mapping_of(server_id: str) -> Any | None:
    """Return a server's mapping; None where it has none or is in no cell."""
    try:
        found = objects.InstanceMapping.get_by_instance_uuid(
            admin(), server_id
        )
    except exception.InstanceMappingNotFound:
        return None
    return found if found.cell_mapping is not None else None


def cell_mapping_of(server_id: str) -> Any:
    """Return the mapping of the cell that a server is in.

    :raises GoneError: where it has been archived
    :raises MovingError: where it is in no cell
    """
    with gone(server_id):
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            admin(), server_id
        )
    if mapping.cell_mapping is None:
        raise MovingError(f"server {server_id} is in no cell")
    return mapping.cell_mapping


@contextmanager
def cell_of(server_id: str, context: Any = None) -> Iterator[Any]:
    """Target the cell of a server.

    :param context: whose; an administrator's by default
    :raises GoneError: where the server is deleted, or will be missed inside
    :raises MovingError: where the server is in no cell
    """
    mapping = cell_mapping_of(server_id)
    targeted = nova_context.target_cell(context or admin(), mapping)
    with kept(), gone(server_id), targeted as cell:
        yield cell


@contextmanager
def gone(server_id: str) -> Iterator[None]:
    """Say in the port's words that Nova misses a server.

    Its row is not seen any more once it is deleted, its mapping once it is
    archived (nova.db.main.api.instance_destroy, nova-manage
    ``db archive_deleted_rows``, 34.0.0).

    :raises GoneError: where it does
    """
    try:
        yield
    except (
        exception.InstanceNotFound,
        exception.InstanceMappingNotFound,
    ) as e:
        raise GoneError(f"server {server_id} is deleted by now") from e
