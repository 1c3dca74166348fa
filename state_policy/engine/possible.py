# SPDX-License-Identifier: Apache-2.0
"""What can be done to a server now: by the rules, and by Nova itself."""

from __future__ import annotations

from collections.abc import Iterator, Set

from state_policy.engine.facts import Facts
from state_policy.engine.ruleset import RuleSet

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

#: Of them, those that do not need the server's compute host: Nova deletes in
#: the API where the host is down (nova.compute.api.API._local_delete).
WITHOUT_HOST = frozenset({"unlock", "delete", "force_delete"})

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
    }
)


def needs(rules: RuleSet) -> frozenset[str]:
    """Return the keys of the facts to read before asking :func:`offers`."""
    return FACTS.union(*(rules.operations[name].may.needs for name in OFFERED))


def offers(
    rules: RuleSet, facts: Facts, native: Set[str] | None, admin: bool
) -> Iterator[str]:
    """Yield names of operations that would be taken now, in order.

    Whether the caller has the right is not looked at here.

    :param native: what Nova itself would take in this state, None where it
        cannot be told: then nothing is offered
    :param admin: whether Nova's lock does not bind the caller
    """
    if native is None or facts.get("server.cell_up") is False:
        return
    for name in OFFERED:
        if name not in native or _beside_the_point(name, facts):
            continue
        if bound_by_lock(name, facts, admin):
            continue
        if facts.get("server.host_up") is False and name not in WITHOUT_HOST:
            continue
        if rules.operations[name].may.test(facts) is True:
            yield name


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
