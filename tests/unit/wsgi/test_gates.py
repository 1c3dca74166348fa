# SPDX-License-Identifier: Apache-2.0
"""Requests about which Nova asks another policy than the operation's own."""

from __future__ import annotations

from typing import Any

import pytest

from state_policy.engine.operations import INSTEAD, OPERATIONS
from tests.unit.wsgi.requests import SERVER, action, ask, environ
from tests.unit.wsgi.rules import driver, make

VOLUME = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
ATTACHMENT = f"/servers/{SERVER}/os-volume_attachments/{VOLUME}"
NEVER = '"class:any": "!"'


def volume(id: str = VOLUME, **more: Any) -> Any:
    """Return a request that changes an attachment."""
    body = {"volumeAttachment": {"volumeId": id}}
    return environ("PUT", ATTACHMENT, body, **more)


def version(text: str) -> dict[str, str]:
    """Return the header that asks for a microversion."""
    return {"HTTP_OPENSTACK_API_VERSION": f"compute {text}"}


LIVE = {"block_migration": "auto"}
HOST: Any = {"host": "h"}
#: The operation, a request, and whether Nova asks the other policy.
REQUESTS: Any = [
    ("migrate", action("migrate", **version("2.56")), False),
    ("migrate", action("migrate", {"host": None}, **version("2.90")), False),
    ("migrate", action("migrate", HOST, **version("2.56")), True),
    ("migrate", action("migrate", HOST, **version("2.55")), False),
    ("migrate", action("migrate", HOST), False),
    ("live_migrate", action("os-migrateLive", {"host": None, **LIVE}), False),
    ("live_migrate", action("os-migrateLive", {**HOST, **LIVE}), True),
    ("update_volume", volume(**version("2.85")), False),
    ("update_volume", volume("another", **version("2.85")), True),
    ("update_volume", volume(**version("2.84")), True),
    ("update_volume", volume(), True),
]
#: Of these it cannot be told.
UNCLEAR: Any = [
    ("migrate", action("migrate", ["h"], **version("2.90"))),
    ("live_migrate", action("os-migrateLive")),
    ("live_migrate", action("os-migrateLive", {})),
    ("update_volume", environ("PUT", ATTACHMENT, b"{", **version("2.90"))),
    ("update_volume", environ("PUT", ATTACHMENT, b" " * 5001)),
    ("update_volume", volume(**version("9"))),
]


def policies(name: str) -> tuple[str, str]:
    """Return the gate of an operation and the policy asked instead."""
    return OPERATIONS[name].gate, INSTEAD[name]


def again(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request with its body from the beginning."""
    stream = request["wsgi.input"]
    return {**request, "wsgi.input": type(stream)(stream.getvalue())}


@pytest.mark.parametrize(("name", "request_of", "other"), REQUESTS)
def test_the_policy_that_nova_asks_counts(
    name: str, request_of: Any, other: bool
) -> None:
    wanted, spare = policies(name)[:: -1 if other else 1]
    for forbidden, code in ((spare, 403), (wanted, 202)):
        reader = driver(forbidden=frozenset({forbidden}))
        found = make(NEVER, reader)
        app: Any = found.app
        assert ask(found, again(request_of)).code == code
        assert ("may", wanted) in reader.asked
        assert ("may", spare) not in reader.asked
        if code == 202:
            # What was read of the body is there for Nova.
            assert app.bodies == [request_of["wsgi.input"].getvalue()]


@pytest.mark.parametrize(("name", "request_of"), UNCLEAR)
def test_rules_are_asked_where_either_would_do(
    name: str, request_of: Any
) -> None:
    gates = policies(name)
    for forbidden, code in (
        (gates[:1], 403),
        (gates[1:], 403),
        (gates, 202),
    ):
        found = make(NEVER, driver(forbidden=frozenset(forbidden)))
        assert ask(found, again(request_of)).code == code


def test_a_right_that_cannot_be_told_is_none() -> None:
    """Not even where the other policy certainly refuses."""
    reader = driver()
    first, second = policies("live_migrate")
    answers = {first: False, second: None}
    reader.may = lambda *args: answers[args[2]]  # type: ignore[method-assign]
    found = make(NEVER, reader, refuse_unknown=True)
    assert ask(found, action("os-migrateLive", {})).code == 503


def test_what_can_be_done_one_way_is_told() -> None:
    """And what cannot be done in any way is not."""
    for forbidden, allowed in (
        (policies("migrate")[:1], True),
        (policies("migrate")[1:], True),
        (policies("migrate"), False),
    ):
        found = make(
            '"server:stop": "server.vm_state:stopped"',
            driver(forbidden=frozenset(forbidden)),
        )
        path = f"/servers/{SERVER}/allowed-actions"
        listed = ask(found, environ("GET", path)).json["allowed_actions"]
        (migrate,) = [i for i in listed if i["operation"] == "migrate"]
        assert migrate["allowed"] is allowed
