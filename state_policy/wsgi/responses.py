# SPDX-License-Identifier: Apache-2.0
"""The answer of the application behind us, taken whole and given on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer.

    :ivar status: the line, ``207 Multi-Status``
    """

    status: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def code(self) -> int:
        """Return the number in the status line."""
        return int(self.status.split(" ", 1)[0])

    def with_body(self, body: bytes, status: str | None = None) -> Response:
        """Return this answer with another body, and its length told."""
        headers = tuple(
            (
                name,
                str(len(body)) if name.lower() == "content-length" else text,
            )
            for name, text in self.headers
        )
        return Response(status or self.status, headers, body)

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Send it."""
        start_response(self.status, list(self.headers))
        return [self.body]


def take(app: WSGIApplication, environ: WSGIEnvironment) -> Response:
    """Return the whole answer of an application."""
    started: list[Any] = []
    written: list[bytes] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Any:
        started[:] = [status, headers]
        return written.append

    chunks = app(environ, start_response)
    try:
        written.extend(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    status, headers = started
    return Response(status, tuple(headers), b"".join(written))
