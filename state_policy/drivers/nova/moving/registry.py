# SPDX-License-Identifier: Apache-2.0
"""What is done in the API database: mapping, request spec, server group."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from nova import exception, objects
from nova.db.api import api as api_db
from nova.db.api import models
from oslo_db import api as oslo_db_api
from oslo_utils import timeutils

from state_policy.drivers.nova.moving import contexts
from state_policy.engine.ports.moving import Owner

_MAPPING = models.InstanceMapping


@oslo_db_api.wrap_db_retry(max_retries=5, retry_on_deadlock=True)  # type: ignore[untyped-decorator]
def give(
    server_id: str,
    to: Owner,
    leave_group: bool,
    join_group: str | None,
    deleted: bool,
) -> None:
    """Name another owner everywhere in the API database, or nowhere."""
    context = contexts.admin()
    with api_db.context_manager.writer.using(context):
        _give_mapping(context, server_id, to, deleted)
        _give_request_spec(context, server_id, to)
        if leave_group:
            _leave_group(context, server_id)
        if join_group is not None:
            _join_group(context, server_id, join_group)


def _give_mapping(
    context: Any, server_id: str, to: Owner, deleted: bool
) -> None:
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            context, server_id
        )
    except exception.InstanceMappingNotFound:
        return
    mapping.project_id = to.project_id
    mapping.user_id = to.user_id
    # A project whose limits are counted in placement is not charged for
    # servers whose mapping says so.
    mapping.queued_for_delete = deleted
    mapping.save()


def _give_request_spec(context: Any, server_id: str, to: Owner) -> None:
    try:
        spec = objects.RequestSpec.get_by_instance_uuid(context, server_id)
    except exception.RequestSpecNotFound:
        return
    spec.project_id = to.project_id
    spec.user_id = to.user_id
    spec.save()


def group_of(server_id: str) -> str | None:
    """Return the uuid of the group a server is a member of."""
    context = contexts.admin()
    query = (
        sa.select(models.InstanceGroup.uuid)
        .join(
            models.InstanceGroupMember,
            models.InstanceGroupMember.group_id == models.InstanceGroup.id,
        )
        .where(models.InstanceGroupMember.instance_uuid == server_id)
        .limit(1)
    )
    with api_db.context_manager.reader.using(context):
        found: str | None = context.session.execute(query).scalar()
    return found


def _leave_group(context: Any, server_id: str) -> None:
    # Nova has no public way out of a group; this deletes the membership as
    # InstanceGroup.destroy_members_bulk does when a server is archived.
    objects.InstanceGroup.destroy_members_bulk(context, [server_id])


def _join_group(context: Any, server_id: str, group: str) -> None:
    member = models.InstanceGroupMember
    group_id = context.session.execute(
        sa.select(models.InstanceGroup.id).where(
            models.InstanceGroup.uuid == group
        )
    ).scalar()
    there = context.session.execute(
        sa.select(member.id).where(member.instance_uuid == server_id)
    ).first()
    if group_id is not None and there is None:
        row = member()
        row.update({"group_id": group_id, "instance_uuid": server_id})
        row.save(context.session)


def mapped_to(projects: tuple[str, ...]) -> list[tuple[str, int | None]]:
    """Return the servers that the mappings give to projects, with cell ids."""
    context = contexts.admin()
    query = sa.select(_MAPPING.instance_uuid, _MAPPING.cell_id).where(
        _MAPPING.project_id.in_(projects)
    )
    with api_db.context_manager.reader.using(context):
        return [tuple(row) for row in context.session.execute(query).all()]


def changed_within(projects: tuple[str, ...], seconds: float) -> int:
    """Return how many living servers came to projects in a time.

    When a server came nobody writes down; its mapping changes then, and once
    more when it is deleted. Those do not count: what was purged fills
    nothing.
    """
    context = contexts.admin()
    since = _ago(seconds)
    query = sa.select(sa.func.count()).where(
        _MAPPING.project_id.in_(projects),
        _MAPPING.updated_at >= since,
        _MAPPING.queued_for_delete == sa.false(),
    )
    with api_db.context_manager.reader.using(context):
        return int(context.session.execute(query).scalar() or 0)


def mapped_before(
    projects: tuple[str, ...], seconds: float
) -> list[tuple[str, int | None]]:
    """Return the living servers whose mapping has not changed in a time."""
    context = contexts.admin()
    query = sa.select(_MAPPING.instance_uuid, _MAPPING.cell_id).where(
        _MAPPING.project_id.in_(projects),
        _MAPPING.updated_at < _ago(seconds),
        _MAPPING.queued_for_delete == sa.false(),
    )
    with api_db.context_manager.reader.using(context):
        return [tuple(row) for row in context.session.execute(query).all()]


def _ago(seconds: float) -> Any:
    return timeutils.utcnow() - timedelta(seconds=seconds)
