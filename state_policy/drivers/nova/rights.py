# SPDX-License-Identifier: Apache-2.0
"""May this caller do this to this server? Nova's own answer, beforehand.

Nova asks twice: the database shows a user nothing but his own project's
servers (nova.db.main.api.model_query, ``project_only``), and then the policy
named after the operation decides. Both are asked here in the same order, with
the same values, and custom policy files count because Nova's own enforcer is
asked.
"""

from __future__ import annotations

from typing import Any

from nova import context as nova_context
from nova import policy

from state_policy.drivers.nova.breaker import CellDownError
from state_policy.drivers.nova.facts.reader import FactReader
from state_policy.drivers.nova.once import Once
from state_policy.drivers.nova.server import Server
from state_policy.engine.ports.reading import Caller, Location

UNLOCK = "os_compute_api:os-lock-server:unlock"
UNLOCK_OVERRIDE = "os_compute_api:os-lock-server:unlock:unlock_override"

#: The policies that Nova asks about the server's user too. The others know
#: the project only, and a rule with a user in it is false for them.
BY_USER = frozenset(
    f"os_compute_api:{name}"
    for name in (
        "os-admin-password",
        "os-deferred-delete:force",
        "os-evacuate",
        "os-lock-server:lock",
        "os-pause-server:pause",
        "os-rescue",
        "os-shelve:shelve",
        "os-shelve:shelve_offload",
        "os-suspend-server:suspend",
        "servers:delete",
        "servers:rebuild",
        "servers:resize",
        "servers:start",
        "servers:stop",
        "servers:trigger_crash_dump",
        "servers:update",
    )
)

#: The policies whose operations Nova looks for in a cell only: a build
#: request is not found by them (nova.api.openstack.compute.servers
#: ``_get_instance``, server_tags).
IN_CELLS = frozenset(
    f"os_compute_api:{name}"
    for name in (
        "servers:start",
        "servers:stop",
        "servers:trigger_crash_dump",
        "os-server-tags:index",
        "os-server-tags:show",
    )
)


class Rights:
    """Judges callers by ownership and Nova's policy."""

    def __init__(self, reader: FactReader, once: Once) -> None:
        self._reader = reader
        self._once = once

    def may(self, caller: Caller, location: Location, gate: str) -> bool:
        """Return whether Nova lets the caller do what the gate guards.

        False too where it cannot be told. Raises nothing.
        """
        try:
            server = self._server(location)
            return server is not None and _allowed(
                caller.context, location, server, gate
            )
        except Exception as error:  # noqa: BLE001 no, by contract
            self._once.warn(f"cannot judge the right to {gate}", error)
            return False

    def _server(self, location: Location) -> Server | None:
        """Return whose the server is; None where Nova would find none."""
        mapped = Server(
            location.server_id, location.project_id, location.user_id
        )
        if location.build_request and location.user_id is not None:
            return mapped
        try:
            return self._reader.server(location)
        except CellDownError as error:
            self._once.warn(f"cell {location.handle.cell} is down", error)
        if location.handle.queued_for_delete:
            return None
        return mapped


def _allowed(
    context: Any, location: Location, server: Server, gate: str
) -> bool:
    if location.build_request:
        if gate in IN_CELLS:
            return False
    elif not _sees(context, server):
        return False
    if not _can(context, server, gate):
        return False
    if gate == UNLOCK and _locked_by_other(context, server):
        return _can(context, server, UNLOCK_OVERRIDE)
    return True


def _sees(context: Any, server: Server) -> bool:
    """Return whether Nova's database layer shows the server's row."""
    if context.is_admin:
        return True
    # Neither a user with a project nor an admin: no row at all
    # (nova.db.main.api.require_context).
    if not nova_context.is_user_context(context):
        return False
    return bool(context.project_id == server.project_id)


def _locked_by_other(context: Any, server: Server) -> bool:
    # As nova.compute.api.API.is_expected_locked_by has it.
    own = context.project_id == server.project_id
    expected = "owner" if own else "admin"
    return bool(server.locked_by) and server.locked_by != expected


def _can(context: Any, server: Server, gate: str) -> bool:
    if not known(gate):
        return False
    target: dict[str, Any] = {"project_id": server.project_id}
    if gate in BY_USER:
        target["user_id"] = server.user_id
    return bool(context.can(gate, target=target, fatal=False))


def known(gate: str) -> bool:
    """Return whether the installed Nova has a policy of this name."""
    rules = policy.get_rules()
    if rules is None:
        policy.init()
        rules = policy.get_rules()
    return gate in rules
