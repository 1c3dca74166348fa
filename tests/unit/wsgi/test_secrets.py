# SPDX-License-Identifier: Apache-2.0
"""Nothing that a request carries in confidence is written anywhere."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from state_policy.engine.operations import OPERATIONS, Operation
from tests.unit.wsgi.requests import OWNER, SERVER, ask, environ
from tests.unit.wsgi.rules import driver, make

SECRET = "s3cr3t"
STATED = '"server:stop": "!"'
CARRIED = {"adminPass": SECRET, "user_data": SECRET, "type": "HARD"}
#: As keystonemiddleware leaves them in an environ.
TOKENS = {
    "HTTP_X_AUTH_TOKEN": SECRET,
    "HTTP_X_SERVICE_TOKEN": SECRET,
    "keystone__token_auth": SECRET,
    "HTTP_X_SERVICE_CATALOG": SECRET,
}


def request_of(operation: Operation) -> dict[str, Any]:
    """Return a request full of secrets."""
    path = operation.path.replace("{server}", SERVER).replace("{id}", "7")
    body: Any = None
    if operation.action is not None:
        body = {operation.action: CARRIED}
    elif operation.method in ("POST", "PUT"):
        body = {"x": CARRIED}
    caller = {**OWNER, "auth_token": SECRET, "service_catalog": [SECRET]}
    return environ(operation.method, path, body, caller=caller, **TOKENS)


@pytest.mark.parametrize("mode", ["enforce", "warn", "audit"])
@pytest.mark.parametrize(
    "text",
    [
        '"class:any": "!"\n"class:read": "!"',
        '"class:any": "server.vm_state:error"',
        '"class:any": "server.az:unread"',
    ],
)
def test_every_operation(
    mode: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    found = make(text, driver(), mode=mode, shadow='"class:any": "!"')
    for operation in OPERATIONS.values():
        answer = ask(found, request_of(operation))
        assert SECRET.encode() not in answer.body
        assert SECRET not in str(answer.headers)
    assert sum(found.recorder.counters.read().values()) > 40
    assert caplog.text
    assert SECRET not in caplog.text


def test_unknown_actions(caplog: pytest.LogCaptureFixture) -> None:
    path = f"/servers/{SERVER}/action"
    ask(make(STATED, driver()), environ("POST", path, {"os-new": CARRIED}))
    assert "os-new" in caplog.text
    assert SECRET not in caplog.text
