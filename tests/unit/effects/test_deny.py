# SPDX-License-Identifier: Apache-2.0
"""The refusal, as the cases of people who met one would have had it."""

from __future__ import annotations

from typing import Any

import pytest

from state_policy.engine.ports.reading import Circumstances
from tests.unit.wsgi.requests import SERVER, Answer, action, ask, environ
from tests.unit.wsgi.rules import driver, make

DETACH = f"/servers/{SERVER}/os-interface/7"


def refused(
    rule: str, request: Any, facts: Any, native: Any, **more: Any
) -> tuple[Answer, Any]:
    """Return the refusal of a request, and the driver."""
    reader = driver(
        facts=facts, native=lambda known: frozenset(native), **more
    )
    return ask(make(rule, reader), request), reader


def test_interface_of_a_server_in_error() -> None:
    answer, _ = refused(
        '"server:detach_interface": "not server.vm_state:error"',
        environ("DELETE", DETACH),
        {"server.vm_state": "error", "server.launched": False},
        {"delete"},
    )
    message = answer.fault["message"]
    assert answer.code == 409
    assert "while it is in vm_state error" in message
    assert "Possible now: DELETE." in message


def test_soft_reboot_of_a_server_in_error() -> None:
    answer, _ = refused(
        '"server:reboot_soft": "not server.vm_state:error"',
        action("reboot", {"type": "SOFT"}),
        {"server.vm_state": "error"},
        {"delete", "reboot_hard", "rebuild", "reboot_soft"},
    )
    assert (
        "Possible now: hard reboot, rebuild, DELETE."
        in (answer.fault["message"])
    )
    assert answer.fault["state_policy"]["possible"] == [
        "reboot_hard",
        "rebuild",
        "delete",
    ]


def test_stop_while_the_host_is_down() -> None:
    answer, _ = refused(
        '"class:power": "not server.host_up:false"',
        action("os-stop"),
        {"server.host_up": False},
        {"delete", "stop", "create_image", "reboot_hard"},
    )
    message = answer.fault["message"]
    assert "while its compute service does not answer" in message
    assert "Possible now: DELETE." in message
    assert b"secret-host" not in answer.body


def test_pause_of_a_locked_server() -> None:
    reader = driver(facts={"server.locked": True})
    reader.servers[SERVER].circumstances = Circumstances(
        locked_reason="maintenance until Monday"
    )
    found = make('"server:pause": "not server.locked:true"', reader)
    message = ask(found, action("pause")).fault["message"]
    assert "while it is locked (maintenance until Monday)" in message
    assert "Possible now: unlock, create image." in message


def test_what_the_caller_may_not_do_is_not_offered() -> None:
    answer, _ = refused(
        '"server:pause": "!"',
        action("pause"),
        {},
        {"delete", "stop"},
        forbidden={"os_compute_api:servers:delete"},
    )
    assert answer.fault["state_policy"]["possible"] == ["stop"]


def test_refusals_read_what_offers_need() -> None:
    _, reader = refused('"server:pause": "!"', action("pause"), {}, {"stop"})
    reads = [keys for what, keys in reader.asked if what == "read"]
    assert reads[0] == frozenset()
    assert reads[1] >= {"server.vm_state", "server.host_up"}


@pytest.mark.parametrize("read", [True, False])
def test_503_asks_nothing_more(read: bool) -> None:
    reader = driver()
    if not read:
        reader.servers[SERVER].facts.clear()
    found = make(
        '"server:pause": "server.vm_state:stopped"',
        reader,
        refuse_unknown=True,
    )
    answer = ask(found, action("pause"))
    asked = [what for what, _ in reader.asked]
    assert answer.code == (409 if read else 503)
    assert ("circumstances" in asked) is read
