# SPDX-License-Identifier: Apache-2.0
"""Requests as a WSGI server hands them over, and what came back."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any
from wsgiref.types import WSGIApplication

from state_policy.drivers.memory import CALLER_KEY

SERVER = "0b1e6f0c-9a53-4d5e-8b8e-1f2a3b4c5d6e"
OWNER = {
    "user_id": "u",
    "project_id": "p",
    "roles": ["member"],
    "is_admin": False,
    "request_id": "req-1",
}
ADMIN = {**OWNER, "project_id": "ops", "roles": ["admin"], "is_admin": True}
FOREIGNER = {**OWNER, "user_id": "f", "project_id": "other"}
INSPECTOR = {**OWNER, "user_id": "i", "project_id": "q"}


def environ(
    method: str = "GET",
    path: str = f"/servers/{SERVER}",
    body: Any = None,
    caller: Any = OWNER,
    **more: Any,
) -> dict[str, Any]:
    """Return an environ; a body that is no bytes is sent as JSON."""
    found: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "/v2.1",
        "PATH_INFO": path,
        "QUERY_STRING": "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
    }
    if caller is not None:
        found[CALLER_KEY] = caller
    if body is not None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        found["wsgi.input"] = io.BytesIO(raw)
        found["CONTENT_LENGTH"] = str(len(raw))
        found["CONTENT_TYPE"] = "application/json"
    found.update({key.replace("__", "."): v for key, v in more.items()})
    return found


def action(name: str, argument: Any = None, **more: Any) -> dict[str, Any]:
    """Return the environ of an action."""
    return environ(
        "POST", f"/servers/{SERVER}/action", {name: argument}, **more
    )


@dataclass
class Answer:
    """What a client gets."""

    status: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    @property
    def code(self) -> int:
        """Return the status as a number."""
        return int(self.status.split()[0])

    @property
    def json(self) -> Any:
        """Return the body, decoded."""
        return json.loads(self.body)

    @property
    def fault(self) -> Any:
        """Return what a fault's one key holds."""
        (fault,) = self.json.values()
        return fault

    def header(self, name: str) -> str | None:
        """Return a header's value."""
        return dict(self.headers).get(name)


def ask(app: WSGIApplication, request: dict[str, Any]) -> Answer:
    """Send a request."""
    answer = Answer()

    def start_response(status: str, headers: Any, info: Any = None) -> Any:
        answer.status, answer.headers = status, headers
        return lambda chunk: None

    answer.body = b"".join(app(request, start_response))
    return answer


class Cloud:
    """Stands for what is behind the filter; keeps what reached it."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []

    def __call__(self, request: Any, start_response: Any) -> list[bytes]:
        """Answer 202 and echo the path."""
        self.seen.append(dict(request))
        self.bodies.append(request["wsgi.input"].read())
        body = f"cloud: {request['PATH_INFO']}".encode()
        start_response(
            "202 Accepted",
            [("Content-Length", str(len(body))), ("X-Cloud", "yes")],
        )
        return [body]
