# SPDX-License-Identifier: Apache-2.0
"""How a fact can change in the state that a server is in.

A kind says how its fact changes as a rule (``Literal.change``). A build and a
running task change more than that by themselves; and of what has no value yet
it depends on the state whether it ever will.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from state_policy.engine.facts import UNREAD, Facts
from state_policy.engine.literal import Change, Literal
from state_policy.engine.states import GROUPS

VM_STATE = "server.vm_state"
TASK_STATE = "server.task_state"

#: Tasks that leave a server in the vm_state it was in: snapshots, backups and
#: a new password (nova.compute.manager, 34.0.0).
_KEEPING = frozenset({*GROUPS["snapshotting"][1], "updating_password"})

#: Tasks that change a server's flavor. A confirmation changes nothing more.
_RESIZING = frozenset(GROUPS["resizing"][1]) - {"resize_confirming"}

_TO_A_HOST = """
scheduling block_device_mapping networking spawning migrating
rebuilding rebuild_block_device_mapping rebuild_spawning
shelving shelving_image_pending_upload shelving_image_uploading
shelving_offloading unshelving
"""
#: Tasks in whose course a server comes to another host, to its first, or off
#: the one it is on. An evacuation is a rebuild.
_MOVING = _RESIZING.union(_TO_A_HOST.split())

_STATES = frozenset({VM_STATE, "server.power_state"})
_LAUNCHED = "server.launched"
_HOST_UP = "server.host_up"
_FLAVOR = "server.flavor"
_VOLUMES = "server.volumes"
#: Facts of the host that a server is on.
_PLACE = frozenset(
    {"server.host", "server.hypervisor", "server.az", "server.aggregate"}
)

#: Facts that change in another way in some states.
VARYING = _STATES | _PLACE | {_LAUNCHED, _HOST_UP, _FLAVOR, _VOLUMES}

#: What is read with a fact because it says how that changes. All of it stands
#: in the server's row, which those facts need anyway.
READ_WITH: Mapping[str, frozenset[str]] = {
    fact: frozenset({VM_STATE, TASK_STATE}) - {fact} for fact in VARYING
}


class Phase(NamedTuple):
    """What of a server's state decides how its facts change.

    :ivar changing: its vm_state changes by itself, or may
    :ivar moving: it may come to another host, or to its first
    :ivar resizing: its flavor may change
    :ivar building: it is being built, its volumes with it
    :ivar offloaded: it has no host until its owner unshelves it
    """

    changing: bool
    moving: bool
    resizing: bool
    building: bool
    offloaded: bool


def phase(vm_state: Any, task_state: Any) -> Phase:
    """Return the phase of a state; None is no task."""
    building = vm_state == "building"
    task = task_state if isinstance(task_state, str) else ""
    return Phase(
        changing=building or (task_state is not None and task not in _KEEPING),
        moving=building or task in _MOVING,
        resizing=task in _RESIZING,
        building=building,
        offloaded=vm_state == "shelved_offloaded",
    )


def phase_of(facts: Facts) -> Phase | None:
    """Return the phase of a server, None where its state was not read."""
    vm_state = facts.get(VM_STATE, UNREAD)
    task_state = facts.get(TASK_STATE, UNREAD)
    if vm_state is UNREAD or task_state is UNREAD:
        return None
    return phase(vm_state, task_state)


def effective_change(literal: Literal, facts: Facts) -> Change:
    """Return how the fact that a condition looks at can change now."""
    if literal.fact not in VARYING:
        return literal.change
    now = phase_of(facts)
    if now is None:
        return literal.change
    value = facts.get(literal.fact, UNREAD)
    return change(literal.fact, literal.change, value, now)


def change(fact: str, usual: Change, value: Any, now: Phase) -> Change:
    """Return how a fact of some value can change in a phase.

    :param usual: how it changes as a rule
    """
    if fact == _HOST_UP:
        return usual if value is not None else _placed(Change.FIXED, now)
    if fact in _PLACE:
        return _placed(usual, now)
    # Who was up once has been for ever.
    passing = (
        (fact in _STATES and now.changing)
        or (fact == _LAUNCHED and value is False and now.changing)
        or (fact == _FLAVOR and now.resizing)
        or (fact == _VOLUMES and now.building)
    )
    return Change.PASSING if passing else usual


def _placed(usual: Change, now: Phase) -> Change:
    """Return how that changes which a server has of its host."""
    if now.moving:
        return Change.PASSING
    if usual is Change.FIXED and now.offloaded:
        return Change.MOVABLE
    return usual
