# SPDX-License-Identifier: Apache-2.0
"""The instance actions that change a server's state, and to what.

Names of actions and task states: nova.compute.instance_actions and
task_states, 34.0.0; which action sets which task_state:
nova.compute.api, nova.compute.manager, nova.conductor.manager.
"""

from __future__ import annotations

from collections.abc import Mapping

DELETE = "delete"
RESET = "resetState"

# task_states | the actions in whose course a server has them
_FITTING = """
scheduling block_device_mapping networking spawning | create unshelve
image_snapshot image_snapshot_pending | createImage createBackup
image_pending_upload image_uploading | createImage createBackup
image_backup | createBackup
updating_password | changePassword
resize_prep resize_migrating resize_migrated resize_finish | resize migrate
resize_reverting | revertResize
resize_confirming | confirmResize
rebooting reboot_pending reboot_started | reboot
rebooting_hard reboot_pending_hard reboot_started_hard | reboot
pausing | pause
unpausing | unpause
suspending | suspend
resuming | resume
powering-off | stop rebuild evacuate revertResize
powering-on | start unshelve
rescuing | rescue
unrescuing | unrescue
rebuilding rebuild_block_device_mapping rebuild_spawning | rebuild evacuate
migrating | live-migration
deleting soft-deleting | delete
restoring | restore
shelving shelving_image_pending_upload shelving_image_uploading | shelve
shelving_offloading | shelveOffload shelve
unshelving | unshelve
"""

# vm_states | the actions that end in them. A state that came without one (a
# guest that shut itself down) has no known beginning.
_ENDING = """
active | create start reboot rebuild unpause resume unrescue unshelve
active | revertResize confirmResize live-migration restore evacuate
stopped | stop rebuild revertResize confirmResize evacuate
paused | pause live-migration
suspended | suspend
rescued | rescue
resized | resize migrate
soft-delete | delete
shelved | shelve
shelved_offloaded | shelve shelveOffload
"""

#: These leave the vm_state as it was, and begin and end a task.
KEEPING = frozenset({"createImage", "createBackup", "changePassword"})


def _read(table: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in table.strip().splitlines():
        left, right = (part.split() for part in line.split("|"))
        for state in left:
            found[state] = found.get(state, frozenset()) | set(right)
    return found


FITTING = _read(_FITTING)
ENDING = _read(_ENDING)

#: The actions that change a server's state.
CHANGING = frozenset({RESET}).union(*FITTING.values(), *ENDING.values())

#: Actions that end an attempt to delete: the server was of use again. Not
#: what leaves the state alone, some of which Nova takes while it deletes: a
#: lock, a share, an extended volume.
OTHERS = CHANGING - {DELETE, RESET}
