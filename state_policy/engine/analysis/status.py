# SPDX-License-Identifier: Apache-2.0
"""What a user sees: the status that Nova makes of the two states.

Source: nova.api.openstack.common, 34.0.0; a functional test compares the
table with the installed Nova. A task_state that is not named has its
vm_state's own status.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from state_policy.engine.analysis import diagram as dd
from state_policy.engine.states import VM_STATES

_REBUILD = {
    "rebuilding": "REBUILD",
    "rebuild_block_device_mapping": "REBUILD",
    "rebuild_spawning": "REBUILD",
}
_RESIZE = {
    "resize_prep": "RESIZE",
    "resize_migrating": "RESIZE",
    "resize_migrated": "RESIZE",
    "resize_finish": "RESIZE",
}

#: vm_state to its own status, and to those of some task_states.
STATUS: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        "active": (
            "ACTIVE",
            {
                "rebooting": "REBOOT",
                "reboot_pending": "REBOOT",
                "reboot_started": "REBOOT",
                "rebooting_hard": "HARD_REBOOT",
                "reboot_pending_hard": "HARD_REBOOT",
                "reboot_started_hard": "HARD_REBOOT",
                "updating_password": "PASSWORD",
                "migrating": "MIGRATING",
                **_REBUILD,
                **_RESIZE,
            },
        ),
        "building": ("BUILD", {}),
        "stopped": ("SHUTOFF", {**_RESIZE, **_REBUILD}),
        "resized": ("VERIFY_RESIZE", {"resize_reverting": "REVERT_RESIZE"}),
        "paused": ("PAUSED", {"migrating": "MIGRATING"}),
        "suspended": ("SUSPENDED", {}),
        "rescued": ("RESCUE", {}),
        "error": ("ERROR", dict(_REBUILD)),
        "deleted": ("DELETED", {}),
        "soft-delete": ("SOFT_DELETED", {}),
        "shelved": ("SHELVED", {}),
        "shelved_offloaded": ("SHELVED_OFFLOADED", {}),
    }
)


def status_of(vm_state: str, task_state: str | None) -> str:
    """Return the status that a user sees."""
    own, others = STATUS[vm_state]
    return others.get(task_state or "", own)


@cache
def statuses() -> Mapping[str, int]:
    """Return the set of states behind each status."""
    # The statuses that last come first, then those of a task.
    found = dict.fromkeys((own for own, _ in STATUS.values()), 0)
    for row, vm_state in enumerate(VM_STATES):
        for column, task_state in enumerate(dd.TASKS):
            name = status_of(vm_state, task_state)
            found[name] = found.get(name, 0) | dd.bit(row, column)
    return MappingProxyType(found)
