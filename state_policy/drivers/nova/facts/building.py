# SPDX-License-Identifier: Apache-2.0
"""The facts about a server that no cell has yet: its build request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from state_policy.drivers.nova.facts import common, parts
from state_policy.drivers.nova.facts.source import age
from state_policy.drivers.nova.server import Server


def facts(server: Server, request: Any) -> Mapping[str, Any]:
    """Return every fact about a build request; it has them all in itself.

    What only a cell could have (a host, an action, a migration) is absent,
    not unread. No cell is in the way of reading the rest: ``server.cell_up``
    is true, as it is of a server whose cell answers.
    """
    instance = request.instance
    volumes = [
        device
        for device in request.block_device_mappings
        if device.destination_type == "volume"
    ]
    metadata = instance.metadata if "metadata" in instance else {}
    flavor = instance.flavor if "flavor" in instance else None
    return {
        **common.facts(server),
        **parts.volumes(_Device(device) for device in volumes),
        "server.state_age": age(server.created_at),
        "server.attempts": 0,
        "server.running": None,
        "server.running_age": None,
        "server.host_up": None,
        "server.hypervisor": None,
        "server.az": server.availability_zone or None,
        "server.aggregate": frozenset(),
        "server.flavor": flavor
        and parts.flavor_names(flavor.name, flavor.flavorid),
        "server.metadata": frozenset(f"{k}={v}" for k, v in metadata.items()),
        "server.tag": frozenset(tag.tag for tag in request.tags),
        "server.migration": None,
    }


class _Device:
    """A block device mapping, much of which may be unset."""

    def __init__(self, device: Any) -> None:
        self.volume_id = device.volume_id if "volume_id" in device else None
        self.boot_index = device.boot_index if "boot_index" in device else None
