# SPDX-License-Identifier: Apache-2.0
"""What is known of Nova's states, against the installed Nova."""

from __future__ import annotations

import ast
import contextlib
import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import webob.exc
from nova import exception
from nova.compute import api as compute
from nova.compute import instance_actions, power_state, task_states, vm_states
from nova.objects import fields

from state_policy.drivers.nova import names, native
from state_policy.drivers.nova.facts import changing
from state_policy.engine import states
from state_policy.engine.operations import OPERATIONS
from tests.functional.nova_reading.reading import ReadingTestCase


def constants(module: Any) -> set[str]:
    """Return the strings that a module of Nova's names in capitals."""
    return {
        value
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }


class TestLists:
    def test_vm_states(self) -> None:
        assert set(states.VM_STATES) == constants(vm_states)

    def test_task_states(self) -> None:
        assert set(states.TASK_STATES) == constants(task_states)

    def test_power_states(self) -> None:
        ours = states.POWER_NUMBERS
        assert ours.keys() == power_state.STATE_MAP.keys()
        for number, name in ours.items():
            theirs = power_state.STATE_MAP[number]
            # Nova calls 0 "pending" in its enum, NOSTATE elsewhere.
            assert name == theirs, number

    def test_actions_and_migrations(self) -> None:
        assert set(states.ACTIONS) == constants(instance_actions)
        assert set(states.MIGRATIONS) == set(fields.MigrationType.ALL)

    def test_clock_knows_every_state(self) -> None:
        """Each task has an action that begins it, by its name in Nova."""
        assert changing.FITTING.keys() == set(states.TASK_STATES)
        known = constants(instance_actions)
        assert known >= changing.CHANGING
        without = set(states.VM_STATES) - changing.ENDING.keys()
        assert without == {"building", "deleted", "error"}


class TestNames:
    def test_the_installed_nova_has_all(self) -> None:
        assert names.differences() == []

    def test_a_difference_is_found(self, monkeypatch: Any) -> None:
        monkeypatch.delattr(compute, "reject_instance_state")
        monkeypatch.setattr(compute, "check_instance_state", lambda a: a)
        found = {name.path: why for name, why in names.differences()}
        assert "no attribute" in found.pop("reject_instance_state")
        assert found.pop("check_instance_state") == "takes a"
        assert not found


def nova_takes(method: str, vm_state: str, task: str | None, up: Any) -> bool:
    """Return whether Nova's decorators let a state pass, by calling them."""

    class PassedError(Exception):
        pass

    class Server:
        uuid = "u"
        host = "h"
        locked = False

    server = Server()
    server.vm_state, server.task_state = vm_state, task  # type: ignore
    server.launched_at = up  # type: ignore

    function = getattr(compute.API, method)
    layers = []
    while hasattr(function, "__wrapped__"):
        if function.__code__.co_qualname.startswith(
            ("check_instance_state", "reject_instance_state")
        ):
            layers.append(function)
        function = function.__wrapped__
    if not layers:
        return True

    def stop(*_: Any, **__: Any) -> None:
        raise PassedError

    # Only the outermost check is called; what it wraps is replaced.
    (layer,) = layers
    at = layer.__code__.co_freevars.index("f")
    cell = layer.__closure__[at]
    kept, cell.cell_contents = cell.cell_contents, _named(stop, method)
    try:
        layer(None, None, server)
    except PassedError:
        return True
    except exception.InstanceInvalidState:
        return False
    finally:
        cell.cell_contents = kept
    raise AssertionError("neither passed nor refused")


def _named(function: Any, name: str) -> Any:
    function.__name__ = name
    return function


class TestTable:
    def test_every_state_against_novas_decorators(self) -> None:
        """12 vm_states x 43 task states x launched or not, every method."""
        table = native.derive()
        compared = 0
        for name, methods in native.METHODS.items():
            for state in itertools.product(
                states.VM_STATES, (None, *states.TASK_STATES), (None, "t")
            ):
                theirs = state[0] in native.BY_CONTROLLER.get(
                    name, states.VM_STATES
                ) and any(nova_takes(m, *state) for m in methods)
                ours = any(
                    all(check.passes(*state) for check in alternative)
                    for alternative in table[name]
                )
                assert ours is theirs, (name, state)
                compared += 1
        assert compared == len(native.METHODS) * 12 * 43 * 2

    def test_no_check_of_novas_is_overlooked(self) -> None:
        checked = {
            name
            for name, function in vars(compute.API).items()
            if callable(function)
            and hasattr(function, "__wrapped__")
            and any(True for _ in native.checks(function))
        }
        used = {m for methods in native.METHODS.values() for m in methods}
        # What no operation of ours leads to: a console type without an
        # action of its own, a method for old clients, the second half of one
        # that is there.
        assert checked - used == {
            "get_mks_console",
            "get_diagnostics",
            "_detach_volume",
        }
        assert native.derive().keys() == OPERATIONS.keys()

    def test_known_states(self) -> None:
        table = native.derive()

        def allowed(vm: str, task: str | None, up: bool = True) -> Any:
            return native.allowed(
                table,
                {
                    "server.vm_state": vm,
                    "server.task_state": task,
                    "server.launched": up,
                },
            )

        assert {"start", "delete"} <= allowed("stopped", None)
        assert "stop" not in allowed("stopped", None)
        assert "stop" not in allowed("active", None, up=False)
        assert "rebuild" not in allowed("active", "image_snapshot")
        assert "delete" in allowed("active", "image_snapshot")
        assert "create_console" not in allowed("active", "deleting")
        assert "add_tag" not in allowed("error", None)
        assert "detach_share" in allowed("error", None)
        assert "attach_share" not in allowed("error", None)
        assert native.allowed(table, {"server.vm_state": "active"}) is None

    def test_on_no_host(self) -> None:
        table = native.derive()
        state = {
            "server.vm_state": "error",
            "server.task_state": None,
            "server.launched": True,
        }
        up, nowhere = (
            native.allowed(table, {**state, "server.host_up": host_up})
            for host_up in (False, None)
        )
        assert up is not None and nowhere is not None
        assert native.allowed(table, state) == up
        assert up - nowhere >= {"stop", "get_vnc_console", "create_console"}
        assert {"delete", "update"} <= nowhere

    def test_decorators_that_hide_what_they_check(
        self, monkeypatch: Any
    ) -> None:
        monkeypatch.setattr(compute.API, "start", lambda *_: None)
        with pytest.raises(LookupError):
            native.derive()


#: Functions of Nova's controllers that look at a server's state themselves,
#: and the operations of ours that they stand before.
LOOKING = {
    "server_tags._check_instance_in_valid_state": (
        "add_tag replace_tags delete_tag delete_tags"
    ),
    "server_shares._check_instance_in_valid_state": (
        "attach_share detach_share"
    ),
    # Not for the versions of today: shelved servers and clients below 2.20.
    "volume_attachments._check_request_version": "",
    "volume_attachments.create": "",
    "volume_attachments.delete": "",
}


def looking() -> set[str]:
    """Return the functions of Nova's controllers that look at a state."""
    from nova.api.openstack import compute as controllers

    found = set()
    for file in Path(controllers.__path__[0]).glob("*.py"):
        for function in ast.walk(ast.parse(file.read_text())):
            if isinstance(function, ast.FunctionDef) and _looks(function):
                found.add(f"{file.stem}.{function.name}")
    return found


def _looks(function: ast.FunctionDef) -> bool:
    """Return whether a function compares a state, or says it is invalid."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = getattr(node.func, "attr", None)
            if called in ("InstanceInvalidState", "InstanceNotReady"):
                return True
        if isinstance(node, ast.Compare) and any(
            isinstance(part, ast.Attribute) and part.attr in STATES
            for part in ast.walk(node)
        ):
            return True
    return False


STATES = ("vm_state", "task_state", "power_state", "launched_at")


class TestControllers:
    """What controllers check beside ``nova.compute.api``."""

    def test_no_other_looks_at_a_state(self) -> None:
        assert looking() == LOOKING.keys()
        ours = {name for names in LOOKING.values() for name in names.split()}
        assert ours == native.BY_CONTROLLER.keys()

    @pytest.mark.parametrize(
        ("module", "controller", "action", "operation"),
        [
            ("server_tags", "ServerTagsController", "x", "add_tag"),
            (
                "server_shares",
                "ServerSharesController",
                "create share",
                "attach_share",
            ),
            (
                "server_shares",
                "ServerSharesController",
                "delete share",
                "detach_share",
            ),
        ],
    )
    def test_every_state(
        self,
        module: str,
        controller: str,
        action: str,
        operation: str,
        monkeypatch: Any,
    ) -> None:
        found = importlib.import_module(f"nova.api.openstack.compute.{module}")
        made = object.__new__(getattr(found, controller))
        made.compute_api = None
        taken = set()
        for state in states.VM_STATES:
            server = SimpleNamespace(uuid="u", vm_state=state)
            monkeypatch.setattr(
                found.common, "get_instance", lambda *_, s=server, **__: s
            )
            with contextlib.suppress(webob.exc.HTTPConflict):
                made._check_instance_in_valid_state(None, "u", action)
                taken.add(state)
        assert taken == native.BY_CONTROLLER[operation]


class TestDriver(ReadingTestCase):
    def test_of_a_server(self) -> None:
        server = self.boot()
        keys = ("server.vm_state", "server.task_state", "server.launched")
        found = self.driver.natively_allowed(self.read(server, *keys))
        assert found is not None
        assert "stop" in found and "start" not in found
        assert self.act(server, "os-start").status == 409
        assert self.driver.natively_allowed({}) is None


class TestImports:
    def test_the_driver_patches_no_process(self) -> None:
        """Importing nova.api.openstack patches for eventlet, up to 32."""
        script = (
            "import sys, state_policy.drivers.nova as d; d.Driver();"
            "print('nova.context' in sys.modules,"
            " 'nova.api.openstack' in sys.modules)"
        )
        environ = {k: v for k, v in os.environ.items() if "EVENTLET" not in k}
        found = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env=environ,
        )
        assert found.stdout.split() == ["True", "False"]
