# SPDX-License-Identifier: Apache-2.0
"""Ports, placement, limits and console tokens of a server that moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nova import exception, objects
from nova.network import model as network_model
from nova.network import neutron
from nova.quota import QUOTAS
from nova.scheduler.client import report

from state_policy.drivers.nova.moving import contexts
from state_policy.engine.ports.moving import MovingError, Owner, Usage

#: Placement answers a writer that was overtaken with a conflict.
_TRIES = 4


def bound_ports(server_id: str) -> frozenset[str]:
    """Return the ids of the ports that Neutron gives to a server."""
    client = neutron.get_client(contexts.admin(), admin=True)
    found = client.list_ports(device_id=server_id)
    return frozenset(port["id"] for port in found.get("ports", []))


def release_ports(
    network_api: Any, server_id: str, made_by_compute: Sequence[str]
) -> None:
    """Unbind a server's ports; delete only those known as Nova-made.

    ``deallocate_for_instance`` (nova.network.neutron, 34.0.0) deletes what it
    does not find in the cache as its owner's, so everything that is not
    known to be Nova's is named to it. It unbinds whatever it is told to, on
    whichever server that is by now: ports that have left are kept from it.
    """
    bound = bound_ports(server_id)
    with contexts.cell_of(server_id) as cell:
        instance = objects.Instance.get_by_uuid(
            cell, server_id, expected_attrs=["info_cache"]
        )
        known = instance.get_network_info() or ()
        if not bound and not known:
            return
        instance.info_cache.network_info = network_model.NetworkInfo(
            [vif for vif in known if vif["id"] in bound]
        )
        theirs = objects.NetworkRequestList(
            objects=[
                objects.NetworkRequest(port_id=port)
                for port in sorted(bound - set(made_by_compute))
            ]
        )
        network_api.deallocate_for_instance(
            cell, instance, requested_networks=theirs
        )


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


def usages(project_id: str) -> tuple[Usage, ...]:
    """Return what a project uses, by resource."""
    found = QUOTAS.get_project_quotas(
        contexts.admin("no"), project_id, usages=True
    )
    return tuple(
        Usage(
            name,
            int(found[name].get("in_use", 0)),
            None if found[name]["limit"] < 0 else int(found[name]["limit"]),
        )
        for name in ("instances", "cores", "ram")
        if name in found
    )
