# SPDX-License-Identifier: Apache-2.0
"""Looks at one server in every store, to know what has to be done with it."""

from __future__ import annotations

import re
from typing import Any

from nova import exception, objects, servicegroup
from oslo_utils import timeutils

from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.moving import contexts, rows
from state_policy.engine.ports.moving import (
    MovingError,
    Owner,
    Port,
    Server,
)

#: Events that compute may leave unfinished after a crash, and the states
#: outside of which they cannot be running any more.
_ONLY_WHILE = {
    "compute__do_build_and_run_instance": ("vm_state", ("building",)),
    "compute_terminate_instance": (
        "task_state",
        ("deleting", "soft-deleting"),
    ),
}


def look(cells: Cells, server_id: str) -> Server | None:
    """Return what is known of a server now; None where it is unknown.

    :raises MovingError: where its cell does not answer
    """
    mapping = contexts.mapping_of(server_id)
    if mapping is None:
        return None
    try:
        return cells.call(
            mapping.cell_mapping,
            lambda cell: _look(cell, mapping),
            contexts.admin(),
        )
    except exception.InstanceNotFound:
        return None
    except Exception as e:
        raise MovingError(
            f"server {server_id} cannot be read: {type(e).__name__}"
        ) from e


def _look(cell: Any, mapping: Any) -> Server:
    instance = objects.Instance.get_by_uuid(
        cell, mapping.instance_uuid, expected_attrs=["info_cache"]
    )
    found = rows.newest_record(cell, instance.uuid)
    return Server(
        id=instance.uuid,
        mapped=_mapped(mapping),
        owner=Owner(instance.project_id, instance.user_id),
        hidden=bool(instance.hidden),
        deleted=bool(instance.deleted),
        name=instance.display_name or "",
        vm_state=instance.vm_state,
        task_state=instance.task_state,
        launched=instance.launched_at is not None,
        locked_by=_locked_by(instance),
        protected=bool(instance.disable_terminate),
        host=instance.host,
        host_up=_host_up(cell, instance.host),
        volumes=_volumes(cell, instance.uuid),
        ports=_ports(instance),
        running=_running(cell, instance),
        idle=_idle(cell, instance.uuid),
        record=found[0] if found else None,
        recorded_at=found[1] if found else None,
    )


def _mapped(mapping: Any) -> Owner:
    # user_id is unset in mappings older than Nova 20 that nobody migrated
    user = mapping.user_id if mapping.obj_attr_is_set("user_id") else ""
    return Owner(mapping.project_id, user)


def _locked_by(instance: Any) -> str | None:
    if not instance.locked:
        return None
    return str(instance.locked_by or "admin")


def _host_up(cell: Any, host: str | None) -> bool | None:
    if host is None:
        return None
    try:
        service = objects.Service.get_by_compute_host(cell, host)
    except exception.ComputeHostNotFound:
        return False
    return bool(servicegroup.API().service_is_up(service))


def _volumes(cell: Any, server_id: str) -> tuple[str, ...]:
    """Return the volumes; the rows of detached ones stay, deleted."""
    found = objects.BlockDeviceMappingList.get_by_instance_uuid(
        cell, server_id
    )
    return tuple(
        bdm.volume_id for bdm in found if bdm.is_volume and not bdm.deleted
    )


def _ports(instance: Any) -> tuple[Port, ...]:
    """Return the ports of compute's cache.

    Only there is it said whether compute made a port. Early in a build there
    is no cache, or nothing in it.
    """
    return tuple(
        Port(vif["id"], vif.get("preserve_on_delete") is False)
        for vif in instance.get_network_info() or ()
    )


def _running(cell: Any, instance: Any) -> frozenset[str]:
    found = set()
    for name in rows.unfinished(cell, instance.uuid):
        attribute, values = _ONLY_WHILE.get(name, (None, ()))
        if attribute is None or getattr(instance, attribute) in values:
            found.add(re.sub(r"^compute_+", "", name))
    return frozenset(found)


def _idle(cell: Any, server_id: str) -> float | None:
    found = rows.actions(cell, server_id)
    if not found:
        return None
    seconds: float = (timeutils.utcnow() - found[0].start_time).total_seconds()
    return max(0.0, seconds)
