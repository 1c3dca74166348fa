# SPDX-License-Identifier: Apache-2.0
"""The kinds that look at a server, its project and the cloud.

What each fact means, and where it is read, is the driver's; the names of
states, actions and migrations are Nova's (34.0.0).
"""

from __future__ import annotations

import re
import uuid

from state_policy.engine import states
from state_policy.engine.literal import Change
from state_policy.rules.faults import shown
from state_policy.rules.kinds import matches
from state_policy.rules.kinds.names import Choice, Flag, Members
from state_policy.rules.kinds.numbers import Count, Span

FIXED, MOVABLE, PASSING = Change.FIXED, Change.MOVABLE, Change.PASSING


#: The longest name of anything, and the longest tag (``nova.objects.tag``).
_LONGEST, _LONGEST_TAG = 255, 60

#: As Glance and Cinder make ids.
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

#: A key of metadata (``nova.api.validation.parameter_types.metadata``).
_KEY = re.compile(r"[a-zA-Z0-9_:. -]{1,255}")


def _no_name(value: str) -> str:
    """Return why nothing in Nova has a name like this, or nothing."""
    if len(value) > _LONGEST:
        return f"is longer than the {_LONGEST} characters of a name"
    return ""


def _no_id(value: str) -> str:
    """Return why an image or a volume has no such id, or nothing."""
    if _ID.fullmatch(value):
        return ""
    try:
        plain = str(uuid.UUID(value))
    except ValueError:
        plain = ""
    if plain:
        # As the driver makes them, however Nova was given them.
        return f"is written {plain}"
    return (
        "is no id, perhaps a name: one looks like"
        " 155d900f-4e14-4e4c-a73d-069cbf4541e6"
    )


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
    impossible = staticmethod(_no_name)


class Host(Choice):
    """``server.host``: its host. Rules may look at it, no answer tells it."""

    change = FIXED
    absent = True
    impossible = staticmethod(_no_name)


class Az(Choice):
    """``server.az``: its availability zone."""

    change = FIXED
    absent = True

    @staticmethod
    def impossible(value: str) -> str:
        """Return why no zone has this name (``az_name`` of Nova's API)."""
        if ":" in value:
            return "names a host too: an availability zone has no colon"
        return _no_name(value)


class Aggregate(Members):
    """``server.aggregate``: the aggregates of its host, by name or id."""

    change = FIXED
    impossible = staticmethod(_no_name)


class Flavor(Choice):
    """``server.flavor``: its flavor, by name or id."""

    change = FIXED
    absent = True
    impossible = staticmethod(_no_name)


class Image(Choice):
    """``server.image``: its image, by id; ``none`` for none."""

    change = FIXED
    absent = True
    impossible = staticmethod(_no_id)


class Volumes(Members):
    """``server.volumes``: the ids of its volumes."""

    change = FIXED
    impossible = staticmethod(_no_id)


class VolumeBacked(Flag):
    """``server.volume_backed``: whether its root disk is a volume."""

    change = FIXED


class Metadata(Members):
    """``server.metadata``: its metadata, each item as ``key=value``."""

    change = FIXED

    def member(self, word: str) -> str:
        """Return ``key=value``, as Nova can have it."""
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise ValueError(f"{shown(word)} is not `key=value`")
        key, value = matches.decode(key), matches.plain(value)
        if not _KEY.fullmatch(key):
            raise ValueError(
                f"{shown(word)}: no key of metadata is {shown(key)}: letters,"
                " digits, blanks and -_:. are; values are not compared"
            )
        if len(value) > _LONGEST:
            raise ValueError(
                f"{shown(word)} is longer than the {_LONGEST} characters of a"
                " value"
            )
        return f"{key}={value}"


class Tag(Members):
    """``server.tag``: its tags."""

    change = FIXED

    @staticmethod
    def impossible(value: str) -> str:
        """Return why Nova takes no such tag.

        By ``nova.api.validation.parameter_types.tag``, 34.0.0.
        """
        if "/" in value or "," in value:
            return "is no tag: Nova's have neither comma nor slash"
        if len(value) > _LONGEST_TAG:
            return f"is longer than the {_LONGEST_TAG} characters of a tag"
        return ""


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
