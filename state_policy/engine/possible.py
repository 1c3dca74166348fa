# SPDX-License-Identifier: Apache-2.0
"""What can be done to a server now: by the rules, and by Nova itself."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Set

from state_policy.engine import changes
from state_policy.engine.facts import Facts
from state_policy.engine.operations import QUARANTINABLE
from state_policy.engine.ruleset import RuleSet
from state_policy.engine.states import GROUPS

#: The operations that are offered as a way out, the most useful first: those
#: that end a state come before those that begin one.
OFFERED = (
    "unlock",
    "confirm_resize",
    "revert_resize",
    "restore",
    "unshelve",
    "unpause",
    "resume",
    "unrescue",
    "start",
    "reboot_hard",
    "rebuild",
    "delete",
    "force_delete",
    "stop",
    "reboot_soft",
    "pause",
    "suspend",
    "create_image",
    "resize",
    "shelve",
    "rescue",
    "attach_volume",
    "attach_interface",
)

_SENT = """
abort_live_migration add_fixed_ip attach_interface attach_share attach_volume
change_password create_backup create_console create_image detach_interface
detach_share detach_volume force_complete_live_migration get_serial_console
get_spice_console get_vnc_console inject_network_info live_migrate migrate
pause reboot_hard reboot_soft rebuild remove_fixed_ip rescue resize restore
resume revert_resize shelve shelve_offload start stop suspend
trigger_crash_dump unpause unrescue unshelve update_volume
"""
#: What the compute service of the server's host has to do. While that does
#: not answer Nova refuses some of it, fails at some, and takes the rest, which
#: then leaves the server in a task for nobody to end. Nova deletes without the
#: host (nova.compute.api.API._local_delete), and confirms a resize on the
#: other one; what remains is in its databases only (tried on 34.0.0).
ON_HOST = frozenset(_SENT.split())

#: What Nova does only while that service does not answer.
OFF_HOST = frozenset({"evacuate"})

_BOUND = """
abort_live_migration add_fixed_ip attach_interface attach_volume
change_password confirm_resize create_metadata delete delete_metadata
detach_interface detach_volume force_complete_live_migration force_delete
inject_network_info live_migrate migrate pause reboot_hard reboot_soft
rebuild remove_fixed_ip replace_metadata rescue resize restore resume
revert_resize shelve shelve_offload start stop suspend trigger_crash_dump
unpause unrescue unshelve update_metadata update_volume
"""
#: What Nova refuses to all but administrators while a server is locked: the
#: methods under ``check_instance_lock`` (nova.compute.api, 34.0.0). The lock
#: does not bind the rest: images, tags, the name, security groups ...
UNDER_LOCK = frozenset(_BOUND.split())

#: All that Nova does to a server of which there is no more than the request
#: to build it; what it does not refuse by the state fails (tried on 34.0.0).
BEFORE_A_CELL = frozenset({"update", "delete", "force_delete"})

#: What an offer depends on, beside the facts that rules name.
FACTS = frozenset(
    {
        "server.vm_state",
        "server.task_state",
        "server.launched",
        "server.locked",
        "server.host_up",
        "server.cell_up",
        "server.disable_terminate",
    }
)

#: Tasks of a delete that Nova has begun.
_DELETING = frozenset(GROUPS["deleting"][1])


def needs(rules: RuleSet) -> frozenset[str]:
    """Return the keys of the facts to read before asking :func:`offers`."""
    return needs_beside(rules).union(
        *(rules.operations[name].may.needs for name in OFFERED)
    )


def needs_beside(rules: RuleSet) -> frozenset[str]:
    """Return the keys of what to know beside the rules for operations."""
    return FACTS.union(
        *(
            rule.needs
            for name in QUARANTINABLE
            for rule in (
                rules.operations[name].quarantine,
                rules.operations[name].escalate,
            )
        )
    )


def offers(
    rules: RuleSet, facts: Facts, native: Set[str] | None, admin: bool
) -> Iterator[str]:
    """Yield names of operations that would be taken now, in order.

    Whether the caller has the right is not looked at here.

    :param native: what Nova itself would take in this state, None where it
        cannot be told: then nothing is offered
    :param admin: whether Nova's lock does not bind the caller
    """
    for name in OFFERED:
        ours = acts(rules, name, facts)
        if obstacle(name, facts, native, admin, ours=ours) is not None:
            continue
        if _beside_the_point(name, facts):
            continue
        if rules.operations[name].may.test(facts) is True:
            yield name


def acts(rules: RuleSet, name: str, facts: Facts) -> bool:
    """Return whether a rule has something done in Nova's place."""
    found = rules.operations[name]
    return name in QUARANTINABLE and (
        found.quarantine.test(facts) is True
        or found.escalate.test(facts) is True
    )


class Obstacle(enum.StrEnum):
    """What is in an operation's way, beside the rules and the rights."""

    CELL_DOWN = "cell_down"
    UNREAD = "unread"
    LOCKED = "locked"
    STATE = "state"
    HOST_DOWN = "host_down"
    HOST_UP = "host_up"
    DELETING = "deleting"
    KEPT = "kept"


#: Those that pass by themselves.
PASSING = frozenset(
    {Obstacle.CELL_DOWN, Obstacle.HOST_DOWN, Obstacle.DELETING}
)


def obstacle(
    name: str,
    facts: Facts,
    native: Set[str] | None,
    admin: bool,
    *,
    ours: bool = False,
) -> Obstacle | None:
    """Return what keeps Nova from doing an operation now, None for nothing.

    :param native: what Nova itself would take in this state, None where it
        cannot be told
    :param admin: whether Nova's lock does not bind the caller
    :param ours: whether a rule has something done in Nova's place
    """
    if facts.get("server.cell_up") is False:
        return Obstacle.CELL_DOWN
    if bound_by_lock(name, facts, admin):
        return Obstacle.LOCKED
    if native is None:
        return Obstacle.UNREAD
    if name not in native:
        return Obstacle.STATE
    up = facts.get("server.host_up")
    if up is False and name in ON_HOST:
        return Obstacle.HOST_DOWN
    if up is True and name in OFF_HOST:
        return Obstacle.HOST_UP
    return _ignored(facts, ours) if name in QUARANTINABLE else None


def _ignored(facts: Facts, ours: bool) -> Obstacle | None:
    """Return why Nova takes a delete and does nothing, None where it acts.

    By nova.compute.api.API._delete, 34.0.0. The quarantine spares what
    disable_terminate keeps.
    """
    if facts.get("server.disable_terminate") is True:
        return Obstacle.KEPT
    if ours or facts.get("server.host_up") is not True:
        return None
    deleting = facts.get("server.task_state") in _DELETING
    return Obstacle.DELETING if deleting else None


def passes(
    name: str,
    facts: Facts,
    allowed: Callable[[Facts], Set[str] | None],
) -> bool:
    """Return whether the state in an operation's way passes by itself.

    :param allowed: from facts to what Nova itself would take
    """
    now = changes.phase_of(facts)
    if now is None:
        return False
    if now.changing:
        return True
    # A task that leaves the server as it is must be all that is in the way.
    return name in (allowed({**facts, "server.task_state": None}) or ())


def bound_by_lock(name: str, facts: Facts, admin: bool) -> bool:
    """Return whether Nova's lock stands before an operation.

    :param admin: whether Nova takes the caller for an administrator
    """
    locked = facts.get("server.locked") is True
    return locked and not admin and name in UNDER_LOCK


def _beside_the_point(name: str, facts: Facts) -> bool:
    """Return whether an operation is no way out here, though it may pass."""
    if name == "unlock":
        return facts.get("server.locked") is not True
    if name == "force_delete":
        # Elsewhere it is the same as a delete.
        return facts.get("server.vm_state") != "soft-delete"
    return False
