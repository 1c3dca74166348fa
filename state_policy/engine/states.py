# SPDX-License-Identifier: Apache-2.0
"""The states a server can be in.

Source: nova.compute.vm_states, task_states and power_state, 34.0.0. The lists
are the same in Nova 28 to 34; a functional test compares them with the
installed Nova.
"""

from __future__ import annotations

VM_STATES: tuple[str, ...] = (
    "active",
    "building",
    "paused",
    "suspended",
    "stopped",
    "rescued",
    "resized",
    "soft-delete",
    "deleted",
    "error",
    "shelved",
    "shelved_offloaded",
)

TASK_STATES: tuple[str, ...] = (
    "scheduling",
    "block_device_mapping",
    "networking",
    "spawning",
    "image_snapshot",
    "image_snapshot_pending",
    "image_pending_upload",
    "image_uploading",
    "image_backup",
    "updating_password",
    "resize_prep",
    "resize_migrating",
    "resize_migrated",
    "resize_finish",
    "resize_reverting",
    "resize_confirming",
    "rebooting",
    "reboot_pending",
    "reboot_started",
    "rebooting_hard",
    "reboot_pending_hard",
    "reboot_started_hard",
    "pausing",
    "unpausing",
    "suspending",
    "resuming",
    "powering-off",
    "powering-on",
    "rescuing",
    "unrescuing",
    "rebuilding",
    "rebuild_block_device_mapping",
    "rebuild_spawning",
    "migrating",
    "deleting",
    "soft-deleting",
    "restoring",
    "shelving",
    "shelving_image_pending_upload",
    "shelving_image_uploading",
    "shelving_offloading",
    "unshelving",
)

#: Names of the power states; Nova stores the numbers of POWER_NUMBERS.
POWER_STATES: tuple[str, ...] = (
    "pending",
    "running",
    "paused",
    "shutdown",
    "crashed",
    "suspended",
)

POWER_NUMBERS: dict[int, str] = {
    0: "pending",
    1: "running",
    3: "paused",
    4: "shutdown",
    6: "crashed",
    7: "suspended",
}

#: Predefined groups: rule name -> (kind, values).
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "building": ("server.vm_state", ("building",)),
    "snapshotting": (
        "server.task_state",
        (
            "image_snapshot_pending",
            "image_snapshot",
            "image_pending_upload",
            "image_uploading",
            "image_backup",
        ),
    ),
    "resizing": (
        "server.task_state",
        (
            "resize_prep",
            "resize_migrating",
            "resize_migrated",
            "resize_finish",
            "resize_reverting",
            "resize_confirming",
        ),
    ),
    "migrating": ("server.task_state", ("migrating",)),
    "rebooting": (
        "server.task_state",
        (
            "rebooting",
            "reboot_pending",
            "reboot_started",
            "rebooting_hard",
            "reboot_pending_hard",
            "reboot_started_hard",
        ),
    ),
    "deleting": ("server.task_state", ("deleting", "soft-deleting")),
}

#: Instance actions, by nova.compute.instance_actions; an action that is not
#: finished is a value of ``server.running``.
ACTIONS: tuple[str, ...] = (
    "create",
    "delete",
    "evacuate",
    "restore",
    "stop",
    "start",
    "reboot",
    "rebuild",
    "revertResize",
    "confirmResize",
    "resize",
    "migrate",
    "pause",
    "unpause",
    "suspend",
    "resume",
    "rescue",
    "unrescue",
    "changePassword",
    "shelve",
    "shelveOffload",
    "unshelve",
    "live-migration",
    "live_migration_cancel",
    "live_migration_force_complete",
    "trigger_crash_dump",
    "extend_volume",
    "attach_interface",
    "detach_interface",
    "attach_volume",
    "detach_volume",
    "attach_share",
    "detach_share",
    "swap_volume",
    "lock",
    "unlock",
    "createBackup",
    "createImage",
    "resetState",
    "refresh_volume_attachment",
)

#: Types of migrations, by nova.objects.fields.MigrationType.
MIGRATIONS: tuple[str, ...] = (
    "evacuation",
    "live-migration",
    "migration",
    "resize",
)
