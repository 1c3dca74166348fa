# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a server's being a member of its group again.

While it was away the scheduler took no account of it. Nova looks at the
policy of a group when it places a server and at no other time, so a
membership that breaks it is possible, and nothing says so.

Policies: nova.objects.InstanceGroup, 34.0.0; the ``soft`` ones may be broken.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from nova import exception, objects
from nova.db.main import models

from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.moving import contexts, rows
from state_policy.engine.ports.moving import MovingError

_ROW = models.Instance


def broken(cells: Cells, server_id: str, group_id: str) -> str | None:
    """Return in words what is wrong, None where nothing is seen to be.

    :raises Exception: where the group cannot be read
    """
    try:
        group = objects.InstanceGroup.get_by_uuid(contexts.admin(), group_id)
    except exception.InstanceGroupNotFound:
        return "its server group is gone"
    hosts = _hosts(cells, {*group.members, server_id})
    own = hosts.pop(server_id, None)
    if own is None or not hosts:
        return None
    beside = sum(host == own for host in hosts.values())
    if group.policy == "anti-affinity" and beside >= _most(group):
        return f"its server group has others on its host: {beside}"
    if group.policy == "affinity" and beside < len(hosts):
        return "its server group has others on other hosts"
    return None


def _most(group: Any) -> int:
    """Return how many members may be on one host."""
    return int((group.rules or {}).get("max_server_per_host", 1))


def _hosts(cells: Cells, server_ids: Iterable[str]) -> dict[str, str]:
    """Return the hosts of living servers, by server.

    :raises MovingError: where a cell of one of them does not answer
    """
    context = contexts.admin()
    wanted = sorted(server_ids)
    mappings = objects.InstanceMappingList.get_by_instance_uuids(
        context, wanted
    )
    in_cells = {
        mapping.cell_mapping.uuid: mapping.cell_mapping
        for mapping in mappings
        if mapping.cell_mapping is not None
    }
    query = sa.select(_ROW.uuid, _ROW.host).where(
        _ROW.uuid.in_(wanted), _ROW.deleted == 0, _ROW.host.is_not(None)
    )
    answers = cells.each(
        in_cells.values(), lambda cell: rows.select(cell, query), context
    )
    for uuid, error in answers.failed.items():
        name = in_cells[uuid].name or uuid
        raise MovingError(f"cell {name} cannot be read: {error}")
    return {
        uuid: host for found in answers.found.values() for uuid, host in found
    }
