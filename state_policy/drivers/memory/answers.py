# SPDX-License-Identifier: Apache-2.0
"""Answers in the shape of the compute API's, without version headers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine.operations import Operation

_KEYS = {
    403: "forbidden",
    404: "itemNotFound",
    406: "computeFault",
    409: "conflictingRequest",
    413: "overLimit",
    429: "overLimit",
    503: "serviceUnavailable",
}
#: A version that is refused, for tests of what a refused version leads to.
REFUSED_VERSION = "compute 9.9"


class Answers:
    """Makes answers."""

    def boot_actions(self) -> frozenset[str] | None:
        """Return None: there are no routes."""
        return None

    def version_accepted(self, environ: WSGIEnvironment) -> bool:
        """Return whether the version asked for is one there is."""
        return environ.get("HTTP_OPENSTACK_API_VERSION") != REFUSED_VERSION

    def version(self, environ: WSGIEnvironment) -> tuple[int, int] | None:
        """Return the version asked for, or the oldest."""
        if not self.version_accepted(environ):
            return None
        asked = environ.get("HTTP_OPENSTACK_API_VERSION", "compute 2.1")
        major, minor = asked.split()[1].split(".")
        return int(major), int(minor)

    def fault(
        self,
        environ: WSGIEnvironment,
        code: int,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> WSGIApplication:
        """Return a refusal."""
        inner = {"code": code, "message": message, **(details or {})}
        headers = [("Content-Type", "application/json")]
        if retry_after is not None:
            headers.append(("Retry-After", str(retry_after)))
        body = json.dumps({_KEYS[code]: inner}).encode()
        return _answer(code, headers, body)

    def not_found(
        self, environ: WSGIEnvironment, server_id: str
    ) -> WSGIApplication:
        """Return the 404 of a server that does not exist."""
        return self.fault(
            environ, 404, f"Instance {server_id} could not be found."
        )

    def accepted(
        self, environ: WSGIEnvironment, operation: Operation
    ) -> WSGIApplication:
        """Return the success of an operation."""
        return _answer(204 if operation.method == "DELETE" else 202, [], b"")

    def told(
        self, environ: WSGIEnvironment, content: Mapping[str, Any]
    ) -> WSGIApplication:
        """Return content; a refusal of a version there is not."""
        if not self.version_accepted(environ):
            return self.fault(environ, 406, "There is no such version.")
        headers = [("Content-Type", "application/json")]
        return _answer(200, headers, json.dumps(content).encode())


def _answer(
    code: int, headers: list[tuple[str, str]], body: bytes
) -> WSGIApplication:
    def answer(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        status = f"{code} {HTTPStatus(code).phrase}"
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [body]

    return answer
