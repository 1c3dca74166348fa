# SPDX-License-Identifier: Apache-2.0
"""Every operation of the installed Nova is known, and none too many."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from nova import policies
from nova.api.openstack.compute import routes

from state_policy.drivers.nova.answers import Answers
from state_policy.drivers.nova.routes import boot_actions
from state_policy.engine.operations import INSTEAD, OPERATIONS

#: On a server, and not an operation on its state: Nova has them only to say
#: that they are gone.
GONE = {"os-virtual-interfaces", "consoles"}


def walked() -> Iterator[tuple[str, str, Any, str]]:
    """Yield method, path, resource class and method name, on one server."""
    for path, methods in routes.ROUTE_LIST:
        if isinstance(methods, str) or not _on_a_server(path):
            continue
        for method, (controller, name) in methods.items():
            yield method, _ours(path), controller, name


def _on_a_server(path: str) -> bool:
    return re.match(r"/(servers|os-volumes_boot)/\{", path) is not None


def _ours(path: str) -> str:
    return re.sub(r"^/[^/]+/\{\w+\}", "/servers/{server}", path)


def _removed(controller: Any, name: str) -> bool:
    return getattr(getattr(controller, name), "removed", False)


def test_every_route_is_an_operation() -> None:
    known = {(op.method, op.path) for op in OPERATIONS.values()}
    seen = set()
    for method, path, make, name in walked():
        classes = (make.args[0],)
        if name != "action" and all(_removed(c, name) for c in classes):
            assert path.split("/")[3] in GONE, path
            continue
        assert (method, path) in known, (method, path)
        seen.add((method, path))
    assert seen == known


def test_every_action_is_an_operation() -> None:
    known = {op.action for op in OPERATIONS.values() if op.action}
    seen = set()
    for _, _, make, name in walked():
        if name != "action":
            continue
        main, subs = make.args
        for controller in (main, *subs):
            for action, method in controller.wsgi_actions.items():
                if not _removed(controller, method):
                    seen.add(action)
    assert seen == known


def test_actions_of_the_second_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nova 34 has some there, older versions every one."""
    found = boot_actions()
    known = {
        op.action
        for op in OPERATIONS.values()
        if op.action and op.path == "/servers/{server}/action"
    }
    assert {"os-start", "rebuild"} <= found < known
    monkeypatch.setattr(
        routes,
        "ROUTE_LIST",
        [
            (
                "/os-volumes_boot/{id}/action",
                {"POST": [_of_servers(), "action"]},
            )
        ],
    )
    assert boot_actions() >= known
    monkeypatch.setattr(routes, "ROUTE_LIST", [])
    assert Answers().boot_actions() is None


def _of_servers() -> Any:
    return dict(routes.ROUTE_LIST)["/servers/{id}/action"]["POST"][0]


class New:
    """A controller that a later Nova might have."""

    def index(self, req: Any, server_id: str) -> None:
        """Do something to a server."""


def test_an_operation_that_is_not_known_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    route = "/servers/{server_id}/os-new"
    more = {
        "GET": [functools.partial(routes._create_controller, New), "index"]
    }
    monkeypatch.setattr(
        routes, "ROUTE_LIST", (*routes.ROUTE_LIST, (route, more))
    )
    with pytest.raises(AssertionError, match="os-new"):
        test_every_route_is_an_operation()


@pytest.mark.parametrize(
    ("name", "walk"),
    [
        ("list_tags", test_every_route_is_an_operation),
        ("pause", test_every_action_is_an_operation),
    ],
)
def test_an_operation_that_is_missing_is_found(
    name: str, walk: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rest = {n: op for n, op in OPERATIONS.items() if n != name}
    monkeypatch.setitem(walk.__globals__, "OPERATIONS", rest)
    with pytest.raises(AssertionError):
        walk()


def test_every_gate_is_a_policy_of_nova() -> None:
    policy = {rule.name: rule for rule in policies.list_rules()}
    for operation in OPERATIONS.values():
        assert operation.gate in policy, operation.name


#: Policies that decide on a part of an answer or an argument; the operation
#: has a gate of its own beside them.
PARTS = {
    "compute:server:topology:host:index",
    "compute:servers:resize:cross_cell",
    "network:attach_external_network",
    "os_compute_api:os-extended-server-attributes",
    "os_compute_api:os-instance-actions:events",
    "os_compute_api:os-instance-actions:events:details",
    "os_compute_api:os-lock-server:unlock:unlock_override",
    "os_compute_api:os-shelve:unshelve_to_host",
    "os_compute_api:servers:create_image:allow_volume_backed",
    "os_compute_api:servers:migrations:index:host",
    "os_compute_api:servers:rebuild:trusted_certs",
    "os_compute_api:servers:show:flavor-extra-specs",
    "os_compute_api:servers:show:host_status",
    "os_compute_api:servers:show:host_status:unknown-only",
}


def test_every_other_policy_is_about_a_part() -> None:
    gates = {gate for op in OPERATIONS.values() for gate in op.gates}
    others = {
        rule.name
        for rule in policies.list_rules()
        if any(
            place["path"].startswith("/servers/{")
            for place in getattr(rule, "operations", ())
        )
    }
    # Older versions of Nova have fewer of them.
    assert others - gates <= PARTS


def alternatives(function: Any) -> Iterator[frozenset[str]]:
    """Yield the policies of each branch in which Nova asks one or another."""
    function = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(function))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.If):
            ways = [
                _asked(part, function) for part in (node.body, node.orelse)
            ]
            if all(ways):
                yield frozenset(ways[0] + ways[1])


def _asked(part: list[ast.stmt], function: Any) -> list[str]:
    """Return the policies that are asked in some statements."""
    return [
        eval(
            compile(ast.Expression(call.args[0]), "policy", "eval"),
            function.__globals__,
        )
        for statement in part
        for call in ast.walk(statement)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "can"
    ]


def methods() -> Iterator[Any]:
    """Yield the methods of Nova's controllers that are about a server."""
    for _, _, make, name in walked():
        main, *subs = make.args
        for controller in (main, *itertools.chain(*subs)):
            names = (
                controller.wsgi_actions.values()
                if name == "action"
                else [name]
            )
            for found in names:
                if hasattr(controller, found):
                    yield getattr(controller, found)


def test_every_policy_that_stands_instead_is_known() -> None:
    found = {pair for method in methods() for pair in alternatives(method)}
    known = {frozenset(op.gates) for op in OPERATIONS.values()}
    assert found and found <= known
    policy = {rule.name for rule in policies.list_rules()}
    # Older versions of Nova have fewer of them.
    assert {p for p in INSTEAD.values() if p in policy} <= set().union(*found)
