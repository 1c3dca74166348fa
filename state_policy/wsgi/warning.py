# SPDX-License-Identifier: Apache-2.0
"""The header of the mode ``warn``: Nova's answer, and what would have been."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine import sentence
from state_policy.engine.decision import Decision
from state_policy.engine.ports.reading import Circumstances


def warned(
    app: WSGIApplication, decision: Decision, server_id: str
) -> WSGIApplication:
    """Return the application with a ``Warning`` header on its answers.

    Code 299 is the one for a warning that stays (RFC 7234, section 5.5).
    """
    text = sentence.tell(decision, server_id, Circumstances(), ())
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    header = ("Warning", f'299 state-policy "{quoted}"')

    def answer(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Any:
            return start_response(status, [*headers, header], exc_info)

        return app(environ, start)

    return answer
