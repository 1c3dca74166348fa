# SPDX-License-Identifier: Apache-2.0
"""Ports, placement and console tokens of a server that moves."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence, Set
from typing import Any

from nova import exception, objects
from nova.network import model as network_model
from nova.network import neutron
from nova.scheduler.client import report

from state_policy.drivers.nova.moving import contexts, rows
from state_policy.engine.ports.moving import MovingError, Owner

LOG = logging.getLogger(__name__)

#: Placement answers a writer that was overtaken with a conflict.
_TRIES = 4


def bound_ports(server_id: str) -> dict[str, str]:
    """Return the ports that Neutron gives to a server, with projects."""
    client = neutron.get_client(contexts.admin(), admin=True)
    found = client.list_ports(device_id=server_id)
    return {
        port["id"]: port.get("project_id") or port.get("tenant_id") or ""
        for port in found.get("ports", [])
    }


def release_ports(
    network_api: Any,
    server_id: str,
    made_by_compute: Sequence[str],
    record: str | None,
    only: Collection[str] | None = None,
) -> None:
    """Unbind a server's ports; delete only those known as Nova-made.

    Not by ``deallocate_for_instance`` (nova.network.neutron, 34.0.0): it
    lists the ports once more, and deletes what it does not find in the cache
    as its owner's. Nova binds ports while a build goes on, and one that came
    in between would be lost. Ports that have left the server are not touched.

    :param record: the newest; Neutron may take its time, and the server may
        be its owner's again before the next port is taken
    :param only: the ports to take; all by default
    :raises MovingError: where a port is still bound afterwards
    """
    client = neutron.get_client(contexts.admin(), admin=True)
    bound = _among(bound_ports(server_id), only)
    with contexts.cell_of(server_id) as cell:
        instance = objects.Instance.get_by_uuid(
            cell, server_id, expected_attrs=["info_cache"]
        )
        interfaces = objects.VirtualInterfaceList.get_by_instance_uuid(
            cell, server_id
        )
        known = {vif["id"] for vif in instance.get_network_info() or ()}
        known |= {interface.uuid for interface in interfaces}
        if not bound and not known:
            return
        for port in sorted(bound):
            rows.expect(cell, server_id, record)
            if port in made_by_compute:
                _delete_port(client, port)
            else:
                network_api._unbind_ports(cell, [port], client)
        # What fails is only logged, by Nova too: what is free says Neutron.
        left = set(bound_ports(server_id))
        free = (bound | known) - left
        for interface in interfaces:
            if interface.uuid in free:
                interface.destroy()
        _forget(instance.info_cache, free)
    left = _among(left, only)
    if left:
        raise MovingError(f"still bound: port {', '.join(sorted(left))}")


def _among(ports: Iterable[str], only: Collection[str] | None) -> set[str]:
    return {port for port in ports if only is None or port in only}


def _delete_port(client: Any, port: str) -> None:
    try:
        client.delete_port(port)
    except neutron.neutron_client_exc.PortNotFoundClient:
        LOG.debug("port %s is gone already", port)
    except Exception:
        LOG.warning("port %s is not deleted", port, exc_info=True)


def _forget(cache: Any, ports: Set[str]) -> None:
    """Take ports out of compute's cache; others may have come to it.

    That of a deleted server takes nothing any more, and nobody reads it
    (nova.db.main.api.instance_info_cache_update, 34.0.0).
    """
    try:
        cache.refresh()
        cache.network_info = network_model.NetworkInfo(
            [vif for vif in cache.network_info if vif["id"] not in ports]
        )
        cache.save()
    except exception.InstanceInfoCacheNotFound:
        LOG.debug("the cache of %s is gone", cache.instance_uuid)


def consumer(server_id: str) -> Owner | None:
    """Return who is charged for a server's resources in placement."""
    found = _allocations(server_id)
    if not found.get("allocations"):
        return None
    return Owner(found["project_id"], found["user_id"])


def charge(server_id: str, to: Owner) -> None:
    """Name another owner of what a server holds in placement.

    :raises MovingError: where placement does not take it
    """
    for _ in range(_TRIES):
        found = _allocations(server_id)
        if not found.get("allocations"):
            return
        if Owner(found["project_id"], found["user_id"]) == to:
            return
        found["project_id"] = to.project_id
        found["user_id"] = to.user_id
        try:
            if report.report_client_singleton().put_allocations(
                contexts.admin(), server_id, found
            ):
                return
        except exception.AllocationUpdateFailed:
            continue  # somebody changed it meanwhile
    raise MovingError(f"placement keeps the consumer {server_id} as it is")


def _allocations(server_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (
        report.report_client_singleton().get_allocs_for_consumer(
            contexts.admin(), server_id
        )
    )
    return found


def close_consoles(server_id: str) -> None:
    """Delete the tokens of the consoles of a server."""
    with contexts.cell_of(server_id) as cell:
        objects.ConsoleAuthToken.clean_console_auths_for_instance(
            cell, server_id
        )
