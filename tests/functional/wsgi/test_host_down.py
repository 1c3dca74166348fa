# SPDX-License-Identifier: Apache-2.0
"""What Nova does to a server whose compute service, or cell, is dead."""

from __future__ import annotations

import inspect
import itertools
import re
from typing import Any

from nova import context
from nova.compute import api
from nova.db.main import api as main_db

from state_policy.drivers.nova import native
from state_policy.engine import possible, states
from state_policy.engine.operations import OPERATIONS
from tests.functional import base
from tests.functional.cells.support import Trouble
from tests.functional.harness import surgery
from tests.functional.nova_reading import requests

#: What Nova answers where a part of the server is not there.
_NO_PART = (400, 403, 404)
#: Nova's own fake of a security group fails for a server without ports.
_FAILING = {"add_security_group", "remove_security_group"}
#: Nova looks at the host by itself, in the conductor, after its answer.
_LATER = {"live_migrate"}


def asked_first() -> list[str]:
    """Return the operations that are no reads; those that end it last."""
    last = ("force_delete", "delete")
    found = [
        name
        for name, operation in OPERATIONS.items()
        if "read" not in operation.classes and name not in last
    ]
    return [*found, *last[1:]]


class TestHostDown(base.NovaTestCase):
    """The service is stopped, and Nova has been told that it is."""

    RULES = '"server:shelve": "@"'

    def setUp(self) -> None:
        super().setUp()
        self.sent: list[str] = []
        self.table = native.derive()

    def kill(self) -> None:
        """Stop the host's service, and note what is sent to it."""
        self.force_down()
        self.compute.stop()
        self.flags(rpc_response_timeout=2, long_rpc_timeout=2)
        from oslo_messaging._drivers import impl_fake

        real = impl_fake.FakeDriver._send

        def send(
            driver: Any,
            target: Any,
            ctxt: Any,
            message: Any,
            *more: Any,
            **named: Any,
        ) -> Any:
            if target.server == "compute" and target.topic == "compute":
                self.sent.append(message["method"])
            return real(driver, target, ctxt, message, *more, **named)

        self.stub_out(
            "oslo_messaging._drivers.impl_fake.FakeDriver._send", send
        )

    def put(self, server: str, name: str) -> None:
        """Bring a server into a state in which Nova takes an operation."""
        for vm_state, task_state in itertools.product(
            ("active", "stopped", *states.VM_STATES), (None, "migrating")
        ):
            if any(
                all(c.passes(vm_state, task_state, True) for c in checks)
                for checks in self.table[name]
            ):
                surgery.set_row(
                    server,
                    vm_state=vm_state,
                    task_state=task_state,
                    locked=False,
                    locked_by=None,
                )
                return
        raise AssertionError(name)

    def said(self, server: str, name: str) -> Any:
        answer = self.ask(
            "GET", f"/servers/{server}/allowed-actions", who=base.OPERATOR
        )
        (found,) = [
            item
            for item in answer.json["allowed_actions"]
            if item["operation"] == name
        ]
        return found

    def test_every_operation(self) -> None:
        server = self.boot()
        self.kill()
        reached = set()
        for name in asked_first():
            operation = OPERATIONS[name]
            self.put(server, name)
            said = self.said(server, name)
            on_host = name in possible.ON_HOST
            self.assertEqual(
                "host_down" if on_host else None, said.get("code"), name
            )
            self.sent.clear()
            answer = self.ask(
                operation.method,
                requests.path(operation, server),
                requests.body(operation),
                who=base.OPERATOR,
                microversion=requests.microversion(operation),
            )
            case = (name, answer.status, answer.body)
            if on_host and name not in _LATER:
                if answer.status in _NO_PART:
                    continue
                reached.add(name)
                if answer.status == 409:
                    self.assertIn(b"Service is unavailable", answer.body)
                    self.assertIn(b'"code": "host_down"', answer.body)
                    self.assertEqual("30", answer.header("Retry-After"))
                else:
                    self.wait_for(lambda: self.sent, f"{case} to be sent")
            else:
                self.assertEqual([], self.sent, case)
                if name not in _FAILING:
                    self.assertTrue(
                        answer.status < 300 or answer.status in _NO_PART, case
                    )
        self.assertGreater(len(reached), len(possible.ON_HOST) * 2 / 3)


def test_what_is_sent_to_a_host_is_known() -> None:
    """Read off Nova's sources: every operation that leads to an RPC."""
    found = {
        name
        for name in OPERATIONS
        if "read" not in OPERATIONS[name].classes
        and any(_sends(method) for method in native.METHODS.get(name, (name,)))
    }
    without = {"delete", "force_delete", "confirm_resize"}
    assert found == possible.ON_HOST | possible.OFF_HOST | without


def _sends(name: str, seen: frozenset[str] = frozenset()) -> bool:
    """Return whether a method of ``nova.compute.api.API`` sends an RPC."""
    method = getattr(api.API, name, None)
    if method is None or name in seen:
        return False
    text = inspect.getsource(inspect.unwrap(method))
    if re.search(r"self\.compute_(rpcapi|task_api)\.", text):
        return True
    called = re.findall(r"self\.(_\w+|force_stop)\b", text)
    return any(_sends(other, seen | {name}) for other in set(called))


class TestCellDown(base.NovaTestCase):
    """The database of the server's cell refuses."""

    RULES = (
        '"server:shelve": "!"\n"server:suspend": "not server.vm_state:stopped"'
    )

    def test_nothing_is_promised(self) -> None:
        server = self.boot()
        admin = context.get_admin_context()
        mapping = self.cell_mappings["cell1"]
        with context.target_cell(admin, mapping) as cell:
            trouble = Trouble(main_db.get_engine(context=cell))
        self.addCleanup(trouble.end)
        trouble.refuse()
        answer = self.ask("GET", f"/servers/{server}/allowed-actions")
        self.assertEqual(200, answer.status, answer)
        found = {i["operation"]: i for i in answer.json["allowed_actions"]}
        self.assertEqual([], [n for n, i in found.items() if i["allowed"]])
        self.assertEqual("policy", found["shelve"]["code"])
        self.assertEqual("cell_down", found["pause"]["code"])
        self.assertEqual(30, found["pause"]["retry_after"])
        for name in ("pause", "suspend"):
            self.assertEqual(500, self.act(server, name).status, name)
        trouble.end()
