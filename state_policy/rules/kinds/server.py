# SPDX-License-Identifier: Apache-2.0
"""The kinds that look at a server, its project and the cloud.

What each fact means, and where it is read, is the driver's; the names of
states, actions and migrations are Nova's (34.0.0).
"""

from __future__ import annotations

from state_policy.engine import states
from state_policy.engine.literal import Change
from state_policy.rules.faults import shown
from state_policy.rules.kinds import matches
from state_policy.rules.kinds.names import Choice, Flag, Members
from state_policy.rules.kinds.numbers import Count, Span

FIXED, MOVABLE, PASSING = Change.FIXED, Change.MOVABLE, Change.PASSING


class VmState(Choice):
    """``server.vm_state``: Nova's vm_state."""

    change = MOVABLE
    values = states.VM_STATES
    noun = "vm_state"


class TaskState(Choice):
    """``server.task_state``: Nova's task_state; ``none`` for no task."""

    change = PASSING
    values = states.TASK_STATES
    absent = True
    noun = "task_state"


class PowerState(Choice):
    """``server.power_state``: Nova's power state by name."""

    change = MOVABLE
    values = states.POWER_STATES
    noun = "power_state"


class StateAge(Span):
    """``server.state_age``: how long the server has been in its state."""

    change = PASSING


class ServerAge(Span):
    """``server.age``: how long ago the server was created."""

    change = PASSING


class Running(Members):
    """``server.running``: the actions that are not finished."""

    change = PASSING
    values = states.ACTIONS
    noun = "action"


class RunningAge(Span):
    """``server.running_age``: how long the oldest of them has run."""

    change = PASSING
    absent = True


class Attempts(Count):
    """``server.attempts``: resets and rungs tried since the first delete."""

    change = PASSING


class Launched(Flag):
    """``server.launched``: whether the server was ever up."""

    change = FIXED


class DisableTerminate(Flag):
    """``server.disable_terminate``: Nova's own flag."""

    change = FIXED


class Locked(Flag):
    """``server.locked``: whether the server is locked."""

    change = MOVABLE


class HostUp(Flag):
    """``server.host_up``: whether its host answers; ``none``: no host."""

    change = PASSING
    absent = True


class CellUp(Flag):
    """``server.cell_up``: whether its cell's database answers."""

    change = PASSING


class Migration(Members):
    """``server.migration``: the types of its migrations under way."""

    change = PASSING
    values = states.MIGRATIONS
    noun = "migration type"


class Hypervisor(Choice):
    """``server.hypervisor``: the hypervisor type of its node."""

    change = FIXED
    absent = True


class Host(Choice):
    """``server.host``: its host. Rules may look at it, no answer tells it."""

    change = FIXED
    absent = True


class Az(Choice):
    """``server.az``: its availability zone."""

    change = FIXED
    absent = True


class Aggregate(Members):
    """``server.aggregate``: the aggregates of its host, by name or id."""

    change = FIXED


class Flavor(Choice):
    """``server.flavor``: its flavor, by name or id."""

    change = FIXED
    absent = True


class Image(Choice):
    """``server.image``: its image, by id; ``none`` for none."""

    change = FIXED
    absent = True


class Volumes(Members):
    """``server.volumes``: the ids of its volumes."""

    change = FIXED


class VolumeBacked(Flag):
    """``server.volume_backed``: whether its root disk is a volume."""

    change = FIXED


class Metadata(Members):
    """``server.metadata``: its metadata, each item as ``key=value``."""

    change = FIXED

    def member(self, word: str) -> str:
        """Return ``key=value``."""
        value = matches.decode(word)
        if not value.partition("=")[1] or value.startswith("="):
            raise ValueError(f"{shown(word)} is not `key=value`")
        return value


class Tag(Members):
    """``server.tag``: its tags."""

    change = FIXED


class Deletes(Count):
    """``project.deletes:<window>``: recent deletes in the project."""

    change = PASSING
    windowed = True


class Stuck(Count):
    """``cloud.stuck``: servers stuck in building or deleting."""

    change = PASSING


class QuarantineAge(Span):
    """``quarantine.age``: how long the server has been in quarantine."""

    change = PASSING


class QuarantineCompleted(Flag):
    """``quarantine.completed``: whether what ran ended after all."""

    change = PASSING
