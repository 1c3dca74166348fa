# SPDX-License-Identifier: Apache-2.0
"""Nova's own refusals, explained.

A 409 that Nova gives to an operation because of the server's state keeps its
code and its text. It gains since when, by which action, what is possible now,
and Retry-After if the state is a passing one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine import possible, sentence
from state_policy.engine.explaining import Background, Explainer
from state_policy.engine.facts import Facts
from state_policy.engine.ports.reading import (
    Circumstances,
    Reader,
    may_any,
)
from state_policy.engine.possible import Obstacle
from state_policy.wsgi.judge import Request
from state_policy.wsgi.record import Recorder
from state_policy.wsgi.responses import Response

#: From Nova's refusal to the one that is sent.
_Amend = Callable[[Response], Response]

#: What Nova answers 409 for beside the state itself. (A cell that is down is
#: no conflict to it.)
_CODES = {Obstacle.LOCKED: "locked", Obstacle.HOST_DOWN: "host_down"}
#: Codes of what began when the state did.
_OF_THE_STATE = frozenset({"busy", "wrong_state", "never_launched"})
#: Codes of what passes by itself: asking again helps.
_PASSING = frozenset({"busy", "host_down"})


class Conflicts:
    """Explains Nova's refusals.

    :param retry_after: seconds to say where nobody knows how long
    """

    def __init__(
        self,
        reader: Reader,
        explainer: Explainer,
        recorder: Recorder,
        retry_after: int,
    ) -> None:
        self._reader = reader
        self._explainer = explainer
        self._recorder = recorder
        self._retry_after = retry_after

    def explained(
        self, app: WSGIApplication, request: Request
    ) -> WSGIApplication:
        """Return the application with its refusals of a request explained."""

        def amend(refusal: Response) -> Response:
            try:
                return self._amended(request, refusal)
            except Exception as error:  # noqa: BLE001
                # Nova's refusal stands without our explanation.
                self._recorder.fault(error)
                return refusal

        return _OnConflict(app, amend)

    def _amended(self, request: Request, refusal: Response) -> Response:
        content = json.loads(refusal.body)
        ((key, fault),) = content.items()
        background = self._background(request)
        if background is None:
            return refusal
        code = self._code(request, background.facts)
        if code is None:
            return refusal
        seconds = self._retry_after if code in _PASSING else None
        fault["message"] = sentence.extend(
            fault["message"],
            # A lock, or a service that does not answer, began at another time.
            background.circumstances
            if code in _OF_THE_STATE
            else Circumstances(),
            background.possible,
            seconds,
        )
        fault["state_policy"] = _details(code, background, seconds)
        return _with_retry(
            refusal.with_body(json.dumps({key: fault}).encode()), seconds
        )

    def _background(self, request: Request) -> Background | None:
        """Return what may be told; None to who may not have the operation."""
        location = request.location or self._reader.locate(request.server_id)
        if location is None or not may_any(
            self._reader, request.caller, location, request.gates
        ):
            return None
        return self._explainer.background(
            request.caller, location, {}, request.operation.name
        )

    def _code(self, request: Request, facts: Facts) -> str | None:
        """Return why Nova refused; None where it is not the state."""
        name = request.operation.name
        native = self._reader.natively_allowed(facts)
        found = possible.obstacle(name, facts, native, request.caller.is_admin)
        if found is Obstacle.STATE:
            return self._state(name, facts)
        return None if found is None else _CODES.get(found)

    def _state(self, name: str, facts: Facts) -> str:
        """Return what of a server's state is in an operation's way."""
        allowed = self._reader.natively_allowed
        if possible.passes(name, facts, allowed):
            return "busy"
        launched = {**facts, "server.launched": True}
        if name in (allowed(launched) or ()):
            return "never_launched"
        return "wrong_state"


def _details(
    code: str, background: Background, seconds: int | None
) -> dict[str, Any]:
    state = {
        key: background.facts[key]
        for key in ("server.vm_state", "server.task_state", "server.locked")
        if key in background.facts
    }
    return {
        "code": code,
        "facts": sentence.tellable(state),
        "possible": list(background.possible),
        "retry_after": seconds,
        **sentence.course(background.circumstances),
    }


def _with_retry(refusal: Response, seconds: int | None) -> Response:
    told = {name.lower() for name, _ in refusal.headers}
    if seconds is None or "retry-after" in told:
        return refusal
    header = ("Retry-After", str(seconds))
    return replace(refusal, headers=(*refusal.headers, header))


class _OnConflict:
    """Gives an answer on as it comes, unless it is a 409."""

    def __init__(self, app: WSGIApplication, amend: _Amend) -> None:
        self._app = app
        self._amend = amend

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        held: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        passed: list[bool] = []
        written: list[bytes] = []

        def start(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Any:
            if status.startswith("409 ") and exc_info is None:
                held[:] = [(status, tuple(headers))]
                return written.append
            passed.append(True)
            return start_response(status, headers, exc_info)

        chunks = self._app(environ, start)
        if passed:
            return chunks
        # A 409, or an application that starts when its body is read.
        try:
            written.extend(chunks)
        finally:
            close = getattr(chunks, "close", None)
            if close is not None:
                close()
        if passed or not held:
            return written
        ((status, headers),) = held
        refusal = Response(status, headers, b"".join(written))
        return self._amend(refusal)(environ, start_response)
