# SPDX-License-Identifier: Apache-2.0
"""When a server is not moved, whatever the rules say.

The request then goes on as if the rule were false. Each reason is one text,
for the log; docs list them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from state_policy.engine.ports.moving import Looking, Server
from state_policy.quarantine.policy import Policy

#: While ports are being made nobody knows whose they are.
_ALLOCATING = frozenset({"networking"})
#: A resize may go to another cell, which hides rows as we do; a migration
#: binds ports on two hosts.
_MOVING = frozenset(
    {
        "resize_prep",
        "resize_migrating",
        "resize_migrated",
        "resize_finish",
        "resize_reverting",
        "resize_confirming",
        "migrating",
    }
)

_Check = Callable[[Server, Mapping[str, Any], Policy], bool]


def _held(server: Server, caller: Mapping[str, Any], policy: Policy) -> bool:
    return (
        server.mapped.project_id in policy.projects
        or server.owner.project_id in policy.projects
    )


def _soft_deleted(
    server: Server, caller: Mapping[str, Any], policy: Policy
) -> bool:
    return (
        server.vm_state == "soft-delete"
        or server.task_state == "soft-deleting"
    )


def _locked(server: Server, caller: Mapping[str, Any], policy: Policy) -> bool:
    return server.locked_by is not None and not caller.get("is_admin")


def _volumes(
    server: Server, caller: Mapping[str, Any], policy: Policy
) -> bool:
    return (
        bool(server.volumes)
        and server.host_up is not False
        and policy.on_volumes == "plain_delete"
    )


#: Reason and test, the cheapest first; the first that holds is the reason.
CHECKS: tuple[tuple[str, _Check], ...] = (
    ("it is deleted", lambda s, c, p: s.deleted),
    ("it is in quarantine already", _held),
    ("its row is hidden by compute itself", lambda s, c, p: s.hidden),
    (
        "the request is a service's",
        lambda s, c, p: "service" in (c.get("roles") or ()),
    ),
    (
        "its project is excluded",
        lambda s, c, p: s.owner.project_id in p.excluded_projects,
    ),
    ("it is locked", _locked),
    ("it is protected from termination", lambda s, c, p: s.protected),
    ("it is soft-deleted", _soft_deleted),
    ("it is resized", lambda s, c, p: s.vm_state == "resized"),
    ("it is moving to another host", lambda s, c, p: s.task_state in _MOVING),
    ("its ports are being made", lambda s, c, p: s.task_state in _ALLOCATING),
    ("it has volumes and its host is alive", _volumes),
)


def excluded(
    server: Server, caller: Mapping[str, Any], policy: Policy
) -> str | None:
    """Return why a server is not moved, None where nothing is in the way.

    :param caller: the credentials of who asks for the delete
    """
    for reason, check in CHECKS:
        if check(server, caller, policy):
            return reason
    return None


def crowded(mover: Looking, policy: Policy) -> str | None:
    """Return why no server at all is moved now, None where they are."""
    limit = policy.max_per_hour
    if limit and mover.moved_within(policy.projects, 3600) >= limit:
        return f"{limit} servers came into quarantine within an hour"
    if mover.overdue(policy.projects, policy.deadline):
        return (
            "a server is concealed for longer than the deadline: no sweep "
            "is running"
        )
    return None
