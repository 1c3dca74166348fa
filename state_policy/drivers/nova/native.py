# SPDX-License-Identifier: Apache-2.0
"""What Nova itself allows in a state, read off the installed Nova.

``nova.compute.api`` checks states in decorators (``check_instance_state``,
``reject_instance_state``) that keep what they check in their closures; the
walk goes along ``__wrapped__``. Controllers that check by themselves are
listed by hand: those of tags and of shares (server_tags and server_shares in
nova.api.openstack.compute, 34.0.0).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from state_policy.engine.facts import UNREAD, Facts
from state_policy.engine.operations import OPERATIONS

# operation | methods of nova.compute.api.API; any one of them will do
_METHODS = """
delete | delete soft_delete
force_delete | force_delete
change_password | set_admin_password
confirm_resize | confirm_resize
create_backup | backup
create_image | snapshot snapshot_volume_backed
evacuate | evacuate
migrate | resize
get_console_output | get_console_output
get_spice_console | get_spice_console
get_serial_console | get_serial_console
get_vnc_console | get_vnc_console
live_migrate | live_migrate
start | start
stop | stop
pause | pause
reboot_soft | _soft_reboot
reboot_hard | _hard_reboot
rebuild | rebuild
rescue | rescue
resize | resize
restore | restore
resume | resume
revert_resize | revert_resize
shelve | shelve
shelve_offload | shelve_offload
suspend | suspend
trigger_crash_dump | trigger_crash_dump
unpause | unpause
unrescue | unrescue
unshelve | unshelve
show_diagnostics | get_instance_diagnostics
create_metadata | update_instance_metadata
replace_metadata | update_instance_metadata
update_metadata | update_instance_metadata
delete_metadata | delete_instance_metadata
abort_live_migration | live_migrate_abort
force_complete_live_migration | live_migrate_force_complete
attach_interface | attach_interface
detach_interface | detach_interface
attach_volume | attach_volume
detach_volume | detach_volume
update_volume | swap_volume
create_console | get_vnc_console
attach_share | allow_share
detach_share | deny_share
"""

#: Methods of ``nova.compute.api.API`` by operation.
METHODS: Mapping[str, tuple[str, ...]] = {
    name.strip(): tuple(methods.split())
    for name, methods in (
        line.split("|") for line in _METHODS.strip().splitlines()
    )
}

# operations | vm_states that their controllers take
_CONTROLLERS = """
add_tag replace_tags delete_tag delete_tags | active paused suspended stopped
attach_share | stopped
detach_share | stopped error
"""

#: What controllers check by themselves, by operation.
BY_CONTROLLER: Mapping[str, frozenset[str]] = {
    name: frozenset(states.split())
    for names, states in (
        line.split("|") for line in _CONTROLLERS.strip().splitlines()
    )
    for name in names.split()
}


@dataclass(frozen=True, slots=True)
class StateCheck:
    """One check of the state.

    :ivar vm_states: allowed; None: all
    :ivar task_states: allowed, None in it for no task; None: all
    :ivar rejected: vm_states and task_states that are refused
    :ivar launched: whether the server must have been up once
    :ivar host: whether the server must be on a host
    """

    vm_states: frozenset[str | None] | None = None
    task_states: frozenset[str | None] | None = None
    rejected_vm_states: frozenset[str | None] = frozenset()
    rejected_task_states: frozenset[str | None] = frozenset()
    launched: bool = False
    host: bool = False

    def passes(
        self, vm_state: Any, task_state: Any, launched: Any, host: bool = True
    ) -> bool:
        """Return whether a state passes.

        :param host: whether the server is on a host
        """
        if self.vm_states is not None and vm_state not in self.vm_states:
            return False
        if self.task_states is not None and task_state not in self.task_states:
            return False
        if vm_state in self.rejected_vm_states:
            return False
        if task_state in self.rejected_task_states:
            return False
        if self.host and not host:
            return False
        return bool(launched) or not self.launched


#: Per operation the alternatives; of each, all checks must pass.
Table = Mapping[str, tuple[tuple[StateCheck, ...], ...]]


def derive() -> Table:
    """Read the table off the installed Nova.

    An operation whose methods this Nova does not have is left out: Nova
    does not offer it.

    :raises LookupError: where the decorators are not as they were known; a
        table with holes would promise what Nova refuses
    """
    from nova.compute import api

    found: dict[str, tuple[tuple[StateCheck, ...], ...]] = {}
    for name in OPERATIONS:
        methods = [
            getattr(api.API, method)
            for method in METHODS.get(name, ())
            if hasattr(api.API, method)
        ]
        first = tuple(_by_controller(name))
        if methods:
            found[name] = tuple((*first, *checks(m)) for m in methods)
        elif name not in METHODS:
            found[name] = (first,)
    if not any(c for alternatives in found.values() for c in alternatives):
        raise LookupError("no state check found in nova.compute.api")
    _expect(found)
    return found


def _by_controller(name: str) -> Iterator[StateCheck]:
    if name in BY_CONTROLLER:
        yield StateCheck(BY_CONTROLLER[name])


def _expect(found: Table) -> None:
    """Refuse a table that lacks a check every supported Nova has."""
    start = found.get("start", ((),))[0]
    if not any(c.vm_states == frozenset({"stopped"}) for c in start):
        raise LookupError("the state check of `start` is not where it was")


def checks(method: Callable[..., Any]) -> Iterator[StateCheck]:
    """Yield the state checks that are wrapped around a method."""
    layer: Any = method
    while layer is not None:
        # The class may be traced (osprofiler): functions all the same.
        layer = inspect.unwrap(layer, stop=_is_layer)
        cells = _closure(layer)
        if _made_by(layer) == "reject_instance_state":
            yield StateCheck(
                rejected_vm_states=_states(cells["vm_state"]) or frozenset(),
                rejected_task_states=_states(cells["task_state"])
                or frozenset(),
            )
        elif _made_by(layer) == "check_instance_state":
            yield StateCheck(
                _states(cells["vm_state"]),
                _states(cells["task_state"]),
                launched=bool(cells["must_have_launched"]),
            )
        elif _made_by(layer) == "check_instance_host":
            yield StateCheck(host=True)
        layer = getattr(layer, "__wrapped__", None)


def _made_by(layer: Any) -> str:
    # The code's own name: functools.wraps gives the function another.
    code = getattr(layer, "__code__", None)
    return "" if code is None else code.co_qualname.partition(".")[0]


def _is_layer(function: Any) -> bool:
    return bool(_closure(function))


def _closure(function: Any) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    if code is None or function.__closure__ is None:
        return {}
    return {
        name: cell.cell_contents
        for name, cell in zip(
            code.co_freevars, function.__closure__, strict=True
        )
    }


def _states(states: Any) -> frozenset[str | None] | None:
    return None if states is None else frozenset(states)


def allowed(table: Table, facts: Facts) -> frozenset[str] | None:
    """Return the operations that Nova takes in a state.

    :returns: None where the facts do not tell the state
    """
    state = [
        facts.get(key, UNREAD)
        for key in ("server.vm_state", "server.task_state", "server.launched")
    ]
    if UNREAD in state:
        return None
    vm_state, task_state, launched = state
    # A server on no host has no answer to whether its host is up.
    host = facts.get("server.host_up", UNREAD) is not None
    return frozenset(
        name
        for name, alternatives in table.items()
        if any(
            all(
                check.passes(vm_state, task_state, launched, host)
                for check in alternative
            )
            for alternative in alternatives
        )
    )
