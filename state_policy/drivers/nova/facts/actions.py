# SPDX-License-Identifier: Apache-2.0
"""Facts from the instance actions: since when a server is in its state.

Names of actions and task states: nova.compute.instance_actions and
task_states, 34.0.0; which action sets which task_state:
nova.compute.api, nova.compute.manager, nova.conductor.manager.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova.db.main import models

from state_policy.drivers.nova.facts.source import Source, age
from state_policy.drivers.nova.server import Server
from state_policy.engine.facts import Age

_TABLE = models.InstanceAction.__table__
_FAULTS = models.InstanceFault.__table__

#: So many of the newest actions are looked at.
LIMIT = 200


class Action(NamedTuple):
    """One instance action."""

    name: str
    started: datetime.datetime | None
    request_id: str | None
    message: str | None


_SELECT = (
    sa.select(
        _TABLE.c.action,
        _TABLE.c.start_time,
        _TABLE.c.request_id,
        _TABLE.c.message,
    )
    .where(_TABLE.c.instance_uuid == sa.bindparam("server"))
    .where(_TABLE.c.deleted == 0)
    .order_by(_TABLE.c.created_at.desc(), _TABLE.c.id.desc())
    .limit(LIMIT)
)

_SELECT_FAULT = sa.select(sa.func.max(_FAULTS.c.created_at)).where(
    _FAULTS.c.instance_uuid == sa.bindparam("server"), _FAULTS.c.deleted == 0
)

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

# These leave the vm_state as it was, and begin and end a task.
_KEEPING = frozenset({"createImage", "createBackup", "changePassword"})


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

#: Actions that come between two deletes without ending the first.
PASSED_OVER = frozenset({"lock", "unlock", RESET})


def load(connection: Any, server_id: str) -> Sequence[Action]:
    """Read the newest actions, the newest first: one SELECT."""
    rows = connection.execute(_SELECT, {"server": server_id})
    return [Action(*row) for row in rows if row.action is not None]


def failed_at(connection: Any, server: Server) -> datetime.datetime | None:
    """Read when a server in ERROR failed last: one SELECT, for those only."""
    if server.vm_state != "error":
        return None
    found: datetime.datetime | None = connection.execute(
        _SELECT_FAULT, {"server": server.uuid}
    ).scalar()
    return found


def deletes(actions: Iterable[Action]) -> list[Action]:
    """Return the deletes of the present attempt to delete, newest first.

    Those since another operation, locks and resets aside; one that ended in
    an error is no part of what a later one began.
    """
    found: list[Action] = []
    for action in actions:
        if action.name == DELETE:
            if found and action.message == "Error":
                break
            found.append(action)
        elif not _passed_over(action):
            break
    return found


def _passed_over(action: Action) -> bool:
    return action.name in PASSED_OVER or is_ours(action)


def is_ours(action: Action) -> bool:
    """Return whether this package wrote the action, not Nova."""
    return action.name.startswith(("quarantine", "escalate", "state-policy"))


def current(server: Server, actions: Sequence[Action]) -> Action | None:
    """Return the action that the present state began with, if one is known."""
    if server.task_state is not None:
        fitting = FITTING.get(server.task_state, frozenset())
        if DELETE in fitting:
            found = deletes(actions)
            return found[-1] if found else None
        return next((a for a in actions if a.name in fitting), None)
    newest = next((a for a in actions if a.name in CHANGING), None)
    if newest is None or not _led_to(newest, server.vm_state):
        return None
    return newest


def _led_to(action: Action, vm_state: str | None) -> bool:
    # A failed operation leaves a server where it was, or in ERROR; and an
    # operation can fail without being marked as such (a build does).
    if vm_state == "error" or action.message == "Error":
        return True
    if action.name == RESET or action.name in _KEEPING:
        return True
    return action.name in ENDING.get(vm_state or "", frozenset())


def state_age(
    server: Server,
    actions: Sequence[Action],
    failed: datetime.datetime | None = None,
) -> Age | None:
    """Return how long the server has been in its state.

    The start of the operation that made the state, or the fault that did if
    that came later; for a build without one the creation; else the last
    change of the row, which anything moves (a new name, a lock) and which is
    therefore a lower bound only.

    :param failed: when it failed last, for one in ERROR
    """
    began = current(server, actions)
    started = began.started if began else None
    if failed is not None and server.task_state is None:
        return age(max(failed, started or failed))
    if server.vm_state == "building" and server.task_state is None:
        return age(server.created_at)
    if started is not None:
        return age(started)
    if server.vm_state == "building" and not _deleting(server):
        return age(server.created_at)
    changed = server.updated_at or server.created_at
    return age(changed, exact=False)


def _deleting(server: Server) -> bool:
    return DELETE in FITTING.get(server.task_state or "", frozenset())


def attempts(actions: Sequence[Action]) -> int:
    """Count the resets and rungs tried since the first delete."""
    found = deletes(actions)
    if not found:
        return 0
    since = actions[: actions.index(found[-1])]
    return sum(a.name == RESET or a.name.startswith("escalate") for a in since)


def _facts(connection: Any, server: Server) -> Mapping[str, Any]:
    actions = load(connection, server.uuid)
    return {
        "server.state_age": state_age(
            server, actions, failed_at(connection, server)
        ),
        "server.attempts": attempts(actions),
    }


SOURCE = Source(frozenset({"server.state_age", "server.attempts"}), _facts)
