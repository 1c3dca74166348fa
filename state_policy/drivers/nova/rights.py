# SPDX-License-Identifier: Apache-2.0
"""May this caller do this to this server? Nova's own answer, beforehand.

Nova asks twice: the database shows a user nothing but his own project's
servers (nova.db.main.api.model_query, ``project_only``), and then the policy
named after the operation decides. Both are asked here in the same order, with
the same values, and custom policy files count because Nova's own enforcer is
asked.

Nova has more patience than this: what cannot be read here in time it may read
a moment later, and act. So nothing that could not be read is a no.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
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

#: The policies that Nova asks without a word about the server.
OF_NO_SERVER = frozenset({"os_compute_api:os-volumes-attachments:swap"})

#: The policy of consoles. The actions of Nova's old API, which have no other,
#: ask it about the caller's own project, whosever the server is.
CONSOLES = "os_compute_api:os-remote-consoles"

#: Policies that came with Nova 32, and what earlier ones ask instead.
FORMER: Mapping[str, str] = MappingProxyType(
    {
        "os_compute_api:os-migrate-server:migrate:host": (
            "os_compute_api:os-migrate-server:migrate"
        ),
        "os_compute_api:os-migrate-server:migrate_live:host": (
            "os_compute_api:os-migrate-server:migrate_live"
        ),
    }
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

    def may(
        self, caller: Caller, location: Location, gate: str
    ) -> bool | None:
        """Return whether Nova lets the caller do what the gate guards.

        Raises nothing.

        :returns: None where it cannot be told
        """
        try:
            return self._judged(caller.context, location, _asked(gate))
        except Exception as error:  # noqa: BLE001 None, by contract
            self._once.warn(f"cannot judge the right to {gate}", error)
            return None

    def _judged(
        self, context: Any, location: Location, gate: str
    ) -> bool | None:
        mapped = Server(
            location.server_id, location.project_id, location.user_id
        )
        if location.build_request and location.user_id is not None:
            return _allowed(context, location, mapped, gate)
        try:
            server = self._reader.server(location)
        except Exception as error:  # noqa: BLE001 the mapping tells enough
            self._warn(location, error)
        else:
            if server is None:
                return False
            return _allowed(context, location, server, gate)
        # Of a server whose delete was accepted nobody knows without its row
        # whether it is still there.
        found = _allowed(context, location, mapped, gate)
        return None if found and location.handle.queued_for_delete else found

    def _warn(self, location: Location, error: Exception) -> None:
        if isinstance(error, CellDownError):
            self._once.warn(f"cell {location.handle.cell} is down", error)
        else:
            self._once.warn("cannot read whose a server is", error)


def _asked(gate: str) -> str:
    """Return the policy that the installed Nova asks."""
    return gate if known(gate) else FORMER.get(gate, gate)


def _allowed(
    context: Any, location: Location, server: Server, gate: str
) -> bool | None:
    if location.build_request:
        if gate in IN_CELLS:
            return False
    elif not _sees(context, server):
        return False
    found = _can(context, server, gate)
    if gate == CONSOLES and not found and not location.build_request:
        # Who sees the server gets one by the one API or by the other.
        return bool(context.can(gate, fatal=False))
    if found and gate == UNLOCK and _locked_by_other(context, server):
        return _can(context, server, UNLOCK_OVERRIDE)
    return found


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


def _can(context: Any, server: Server, gate: str) -> bool | None:
    """Return what Nova's policy says.

    :returns: None where that depends on the server's user and only its row,
        which was not read, could name him: mappings from before Nova's Train
        do not
    """
    if not known(gate):
        return False
    target: dict[str, Any] = (
        {} if gate in OF_NO_SERVER else {"project_id": server.project_id}
    )
    if gate not in BY_USER:
        return bool(context.can(gate, target=target, fatal=False))
    users = [server.user_id]
    if server.user_id is None:
        users.append(context.user_id)
    found = {
        bool(context.can(gate, target={**target, "user_id": u}, fatal=False))
        for u in users
    }
    return found.pop() if len(found) == 1 else None


def known(gate: str) -> bool:
    """Return whether the installed Nova has a policy of this name."""
    rules = policy.get_rules()
    if rules is None:
        policy.init()
        rules = policy.get_rules()
    return gate in rules
