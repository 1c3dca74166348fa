# SPDX-License-Identifier: Apache-2.0
"""Each operation is recognised, and each known way around it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from state_policy.engine.operations import OPERATIONS, Operation
from state_policy.wsgi import doors
from tests.unit.wsgi.requests import SERVER, action, environ

LIMIT = 1000
PROJECT = "0123456789abcdef0123456789abcdef"


def found(request: dict[str, Any]) -> str | None:
    """Return the name of the operation that a request is taken for."""
    door = doors.find(request, LIMIT)
    if door is None or door.operation is None:
        return None
    return door.operation.name


def request_of(operation: Operation, prefix: str = "") -> dict[str, Any]:
    """Return a plain request for an operation."""
    path = operation.path.replace("{server}", SERVER).replace("{id}", "7")
    body: Any = None
    if operation.action is not None:
        argument = None
        if operation.action == "reboot":
            argument = {"type": operation.name.removeprefix("reboot_")}
        body = {operation.action: argument}
    elif operation.method in ("POST", "PUT"):
        body = {"x": 1}
    return environ(operation.method, prefix + path, body)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("prefix", ["", f"/{PROJECT}", f"/{SERVER}", "/-"])
def test_each_operation(name: str, prefix: str) -> None:
    door = doors.find(request_of(OPERATIONS[name], prefix), LIMIT)
    assert door is not None
    assert door.operation is OPERATIONS[name]
    assert door.address.server_id == SERVER
    assert door.address.project_id == (prefix.removeprefix("/") or None)


@pytest.mark.parametrize(
    ("method", "suffix", "body", "name"),
    [
        ("GET", "", None, "show"),
        ("PUT", "", {"server": {}}, "update"),
        ("DELETE", "", None, "delete"),
        ("POST", "/action", {"os-stop": None}, "stop"),
    ],
)
@pytest.mark.parametrize("prefix", ["", f"/{PROJECT}"])
def test_second_address_of_the_same_servers(
    method: str, suffix: str, body: Any, name: str, prefix: str
) -> None:
    path = f"{prefix}/os-volumes_boot/{SERVER}{suffix}"
    assert found(environ(method, path, body)) == name


@pytest.mark.parametrize(
    "path",
    [
        f"/servers/{SERVER}/",
        f"//servers/{SERVER}",
        f"/servers//{SERVER}",
        f"/Servers/{SERVER}",
        f"/servers/{SERVER}/x",
        f"servers/{SERVER}",
        f"/p/servers/{SERVER}",
        f"/ABCDEF/servers/{SERVER}",
        f"/{PROJECT}/{PROJECT}/servers/{SERVER}",
        f"/flavors/{SERVER}",
        "/servers/",
        "/servers",
        "",
    ],
)
def test_what_does_not_route(path: str) -> None:
    assert found(environ("DELETE", path)) is None


def test_os_volumes_boot_has_no_more_than_it_routes() -> None:
    path = f"/os-volumes_boot/{SERVER}"
    assert found(environ("DELETE", f"{path}/tags")) is None
    pause = environ("POST", f"{path}/action", {"pause": None})
    assert doors.find(pause, LIMIT, {"os-start"}).operation is None
    # Older versions have every action there; so it is if nobody can tell.
    assert found(pause) == "pause"
    for reboot, name in (("SOFT", "reboot_soft"), ("HARD", "reboot_hard")):
        again = environ("POST", f"{path}/action", {"reboot": {"type": reboot}})
        door = doors.find(again, LIMIT, {"reboot"})
        assert door.operation is OPERATIONS[name]


def test_a_newline_at_the_end_is_not_part_of_the_path() -> None:
    door = doors.find(environ("DELETE", f"/servers/{SERVER}\n"), LIMIT)
    assert door is not None and door.operation is OPERATIONS["delete"]
    assert door.address.server_id == SERVER
    path = f"/servers/{SERVER}/action\n"
    assert found(environ("POST", path, {"os-stop": None})) == "stop"


def test_format_suffix_is_part_of_the_id() -> None:
    door = doors.find(environ("DELETE", f"/servers/{SERVER}.json"), LIMIT)
    assert door is not None and door.operation is OPERATIONS["delete"]
    assert door.address.server_id == f"{SERVER}.json"
    path = f"/servers/{SERVER}/action.json"
    assert found(environ("POST", path, {"os-stop": None})) is None


def test_the_list_is_no_server() -> None:
    assert found(environ("GET", "/servers/detail")) is None
    assert found(environ("DELETE", "/servers/detail")) == "delete"


@pytest.mark.parametrize(
    ("method", "query", "name"),
    [
        ("GET", "_method=DELETE", "delete"),
        ("GET", "a=1&_method=delete", "delete"),
        ("HEAD", "_method=%44ELETE", "delete"),
        ("GET", "_method=GET&_method=DELETE", "delete"),
        ("DELETE", "_method=GET", "show"),
        ("DELETE", "_method=", "delete"),
        ("DELETE", "x_method=GET", "delete"),
        ("POST", "_method=DELETE", None),
        ("GET", "_method=PUT", None),
        ("PUT", "_method=put", "update"),
        ("HEAD", "", None),
        ("delete", "", None),
    ],
)
def test_method_in_the_query(method: str, query: str, name: str) -> None:
    assert found(environ(method, QUERY_STRING=query)) == name


@pytest.mark.parametrize(
    ("content_type", "routes"),
    [
        ("application/json", True),
        ("application/json; charset=utf-8", True),
        ("application/vnd.openstack.compute+json", True),
        ("text/plain", True),
        ("", True),
        ("text/html", False),
        ("application/x-www-form-urlencoded", False),
        ("multipart/form-data; boundary=x", False),
        ("Application/JSON", False),
    ],
)
def test_content_types(content_type: str, routes: bool) -> None:
    request = environ("DELETE", CONTENT_TYPE=content_type)
    assert (found(request) == "delete") is routes


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"reb\\u006fot": {"type": "SOFT"}}', "reboot_soft"),
        (b'{"rebuild": {}, "rebuild": {}}', "rebuild"),
        (b'{"rebuild": {}, "x": 1}', None),
        (b'{"x": 1, "rebuild": {}}', None),
        (b'\xef\xbb\xbf{"rebuild": {}}', None),
        ('{"rebuild": {}}'.encode("utf-16"), None),
        (b'{"rebuild": {"x": "\xff"}}', None),
        (b' \n{"rebuild": {}} ', "rebuild"),
        (b'{"rebuild": NaN}', "rebuild"),
        (b'{"rebuild": {}}x', None),
        (b'["rebuild"]', None),
        (b'"rebuild"', None),
        (b"[" * 900, None),
        (b"", None),
    ],
)
def test_name_of_the_action(body: bytes, name: str | None) -> None:
    request = environ("POST", f"/servers/{SERVER}/action", body)
    assert found(request) == name
    assert request["wsgi.input"].read() == body


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ({"type": "SOFT"}, "reboot_soft"),
        ({"type": "Soft"}, "reboot_soft"),
        ({"type": "HARD"}, "reboot_hard"),
        ({"type": "hard", "x": 1}, "reboot_hard"),
        ({"type": "hArD"}, None),
        ({"type": None}, None),
        ({"type": ["HARD"]}, None),
        ({}, None),
        (None, None),
        ("HARD", None),
    ],
)
def test_kinds_of_reboot(argument: Any, name: str | None) -> None:
    request = action("reboot", argument)
    door = doors.find(request, LIMIT)
    assert door is not None and door.unknown is None
    assert (door.operation and door.operation.name) == name


def test_unknown_action() -> None:
    door = doors.find(action("os-new"), LIMIT)
    assert door is not None
    assert (door.operation, door.unknown) == (None, "os-new")


def test_action_of_another_address() -> None:
    path = f"/servers/{SERVER}/migrations/4/action"
    assert (
        found(environ("POST", path, {"force_complete": None}))
        == "force_complete_live_migration"
    )
    door = doors.find(environ("POST", path, {"os-stop": None}), LIMIT)
    assert door is not None
    assert (door.operation, door.unknown) == (None, "os-stop")


def test_a_body_beyond_the_bound_goes_on_whole() -> None:
    body = json.dumps({"os-stop": "x" * LIMIT}).encode()
    request = environ("POST", f"/servers/{SERVER}/action", body)
    door = doors.find(request, LIMIT)
    assert door is not None and door.operation is None
    assert door.unreadable == "longer than the bound"
    assert request["wsgi.input"].read() == body


def test_only_actions_are_read() -> None:
    class Untouchable(io.RawIOBase):
        def readinto(self, buffer: Any) -> int:
            raise AssertionError("nobody needs this body")

    path = f"/servers/{SERVER}/metadata"
    request = environ("POST", path, b"x", wsgi__input=Untouchable())
    assert found(request) == "create_metadata"


@pytest.mark.parametrize(
    ("server_id", "plain", "lookup"),
    [
        (SERVER, True, SERVER),
        (SERVER.upper(), True, SERVER.upper()),
        (SERVER + " ", False, SERVER),
        (SERVER.replace("a", "\xe1"), False, SERVER),
        (SERVER[:5] + "\xad" + SERVER[5:], False, SERVER),
        ("{" + SERVER + "}", False, SERVER),
        ("\xe6" + SERVER, False, SERVER),
    ],
)
def test_ids_that_a_collation_takes_for_the_same(
    server_id: str, plain: bool, lookup: str
) -> None:
    found = doors.address(f"/servers/{server_id}")
    assert found is not None
    assert (found.plain, found.lookup) == (plain, lookup)
    both = (server_id,) if plain else (server_id, lookup)
    assert found.lookups == both


@pytest.mark.parametrize("server_id", ["my server", "caf\xe9-front"])
def test_names_are_not_looked_up(server_id: str) -> None:
    found = doors.address(f"/servers/{server_id}")
    assert found is not None and found.lookups == ()
