# SPDX-License-Identifier: Apache-2.0
"""A request of every operation that Nova takes for well formed."""

from __future__ import annotations

import uuid
from typing import Any

from state_policy.engine.operations import Operation

ID = str(uuid.uuid4())

# Bodies of actions, and of other operations by their names. An action that
# is not here has none.
_ACTIONS: dict[str, Any] = {
    "addFixedIp": {"networkId": ID},
    "addFloatingIp": {"address": "10.0.0.9"},
    "addSecurityGroup": {"name": "default"},
    "changePassword": {"adminPass": "secret"},
    "createBackup": {"name": "b", "backup_type": "daily", "rotation": 1},
    "createImage": {"name": "i"},
    "evacuate": {},
    "os-getConsoleOutput": {},
    "os-getSPICEConsole": {"type": "spice-html5"},
    "os-getSerialConsole": {"type": "serial"},
    "os-getVNCConsole": {"type": "novnc"},
    "os-migrateLive": {"host": None, "block_migration": "auto"},
    "os-resetState": {"state": "active"},
    "rebuild": {"imageRef": "155d900f-4e14-4e4c-a73d-069cbf4541e6"},
    "removeFixedIp": {"address": "10.0.0.9"},
    "removeFloatingIp": {"address": "10.0.0.9"},
    "removeSecurityGroup": {"name": "default"},
    "resize": {"flavorRef": "2"},
}
_BODIES: dict[str, Any] = {
    "update": {"server": {"name": "n"}},
    "create_metadata": {"metadata": {"k": "v"}},
    "replace_metadata": {"metadata": {"k": "v"}},
    "update_metadata": {"meta": {ID: "v"}},
    "attach_interface": {"interfaceAttachment": {"net_id": ID}},
    "attach_volume": {"volumeAttachment": {"volumeId": ID}},
    "update_volume": {"volumeAttachment": {"volumeId": ID}},
    "create_console": {"remote_console": {"protocol": "vnc", "type": "novnc"}},
    "attach_share": {"share": {"share_id": ID}},
    "replace_tags": {"tags": ["a"]},
}

# Operations that Nova has taken out of its newer versions, or put into them.
OLD_CONSOLES = frozenset(
    {"get_spice_console", "get_serial_console", "get_vnc_console"}
)
_OLD = OLD_CONSOLES | {
    "add_fixed_ip",
    "remove_fixed_ip",
    "add_floating_ip",
    "remove_floating_ip",
}
_NEW = frozenset({"attach_share", "detach_share", "list_shares", "show_share"})
LATEST, OLDEST = "2.97", "2.1"


def microversion(operation: Operation) -> str:
    """Return a microversion that has the operation."""
    if operation.name in _OLD:
        return OLDEST
    return LATEST if operation.name in _NEW else "2.90"


def path(operation: Operation, server_id: str) -> str:
    """Return its path, with an id that a part of the server could have."""
    part = "1" if "migrations" in operation.path else ID
    return operation.path.format(server=server_id, id=part)


def body(operation: Operation) -> Any:
    """Return a body that Nova's schemas take, or None."""
    if operation.action is None:
        return _BODIES.get(operation.name)
    arguments = _ACTIONS.get(operation.action)
    if operation.action == "reboot":
        arguments = {"type": operation.name.removeprefix("reboot_").upper()}
    return {operation.action: arguments}
