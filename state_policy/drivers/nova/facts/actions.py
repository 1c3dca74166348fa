# SPDX-License-Identifier: Apache-2.0
"""Facts from the instance actions: since when a server is in its state."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from state_policy.drivers.nova.facts import changing, history
from state_policy.drivers.nova.facts.history import Action, History
from state_policy.drivers.nova.facts.source import Source, age
from state_policy.drivers.nova.server import Server
from state_policy.engine.facts import Age


def current(server: Server, seen: History) -> Action | None:
    """Return the action that the present state began with, if one is known."""
    if server.task_state is not None:
        if _deleting(server):
            return seen.first_delete
        return seen.last(changing.FITTING.get(server.task_state, ()))
    newest = seen.last(changing.CHANGING)
    if newest is None or not _led_to(newest, server.vm_state):
        return None
    return newest


def _led_to(action: Action, vm_state: str | None) -> bool:
    # A failed operation leaves a server where it was, or in ERROR.
    if action.message == "Error" or action.name == changing.RESET:
        return True
    # Nova takes these of servers that are not in ERROR only.
    if action.name in changing.KEEPING:
        return vm_state != "error"
    return action.name in changing.ENDING.get(vm_state or "", frozenset())


def state_age(
    server: Server,
    seen: History,
    failed: datetime.datetime | None = None,
) -> Age | None:
    """Return how long the server has been in its state.

    The start of the operation that made the state, or the fault that did if
    that came later; for a build without one the creation; else the last
    change of the row, which anything moves (a new name, a lock) and which is
    therefore a lower bound only. So it is for ERROR without a trace: a
    compute service that starts sets it and writes down neither a fault nor an
    action (nova.compute.manager, 34.0.0).

    :param failed: when it failed last, for one in ERROR
    """
    began = current(server, seen)
    started = began.started if began else None
    if failed is not None and _of_present(failed, server, seen):
        return age(max(failed, started or failed))
    if server.vm_state == "building" and server.task_state is None:
        return age(server.created_at)
    if started is not None:
        return age(started)
    if server.vm_state == "building" and not _deleting(server):
        return age(server.created_at)
    changed = server.updated_at or server.created_at
    return age(changed, exact=False)


def _of_present(
    failed: datetime.datetime, server: Server, seen: History
) -> bool:
    """Return whether a fault may have made the present state.

    Not one before an operation that went well: ERROR came after that.
    """
    if server.task_state is not None:
        return False
    newest = seen.last(changing.CHANGING)
    if newest is None or _led_to(newest, server.vm_state):
        return True
    return newest.started is None or failed >= newest.started


def _deleting(server: Server) -> bool:
    return changing.DELETE in changing.FITTING.get(
        server.task_state or "", frozenset()
    )


def _facts(connection: Any, server: Server) -> Mapping[str, Any]:
    seen = history.load(connection, server.uuid)
    failed = history.failed_at(connection, server)
    return {
        "server.state_age": state_age(server, seen, failed),
        "server.attempts": history.tried(connection, server.uuid, seen),
    }


SOURCE = Source(frozenset({"server.state_age", "server.attempts"}), _facts)
