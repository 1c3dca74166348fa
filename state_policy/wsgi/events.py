# SPDX-License-Identifier: Apache-2.0
"""External events of concealed servers.

Nova looks the servers of ``POST /os-server-external-events`` up in a list,
and a concealed one is in no list: its event would be dropped, and a build
that waits for it would fail. So what Nova answers 404 for is looked at again,
and delivered here if the server is concealed.

Source: nova.api.openstack.compute.server_external_events, 34.0.0: the events
of the answer are those of the request, in their order, each with a code.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine.ports.moving import Mover
from state_policy.engine.ports.reading import Reader
from state_policy.wsgi import body, doors
from state_policy.wsgi.record import Recorder
from state_policy.wsgi.responses import Response, take

_WORD = "os-server-external-events"

#: An event of a request, or of an answer.
_Event = dict[str, Any]


class Events:
    """Answers for Nova, where the events of concealed servers need it.

    :param app: Nova
    :param projects: ids of the quarantine projects
    :param limit: bytes of a body that are read
    """

    def __init__(
        self,
        app: WSGIApplication,
        reader: Reader,
        mover: Mover,
        recorder: Recorder,
        projects: Collection[str],
        limit: int,
    ) -> None:
        self._app = app
        self._reader = reader
        self._mover = mover
        self._recorder = recorder
        self._projects = frozenset(projects)
        self._limit = limit

    def addressed(self, environ: WSGIEnvironment) -> bool:
        """Return whether a request brings events."""
        parts = doors.split(environ.get("PATH_INFO", ""))
        return (
            parts[-1] == _WORD
            and len(parts) in (2, 3)
            and doors.routed_method(environ) == "POST"
        )

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Have Nova answer, then deliver what it dropped."""
        sent = self._sent(environ)
        answer = take(self._app, environ)
        if sent and answer.code == 207:
            try:
                answer = self._amended(answer, sent)
            except Exception as error:  # noqa: BLE001
                self._recorder.fault(error)
        return answer(environ, start_response)

    def _sent(self, environ: WSGIEnvironment) -> list[_Event]:
        """Return the events of a request; none where it is not clear."""
        try:
            found = json.loads(body.read(environ, self._limit))["events"]
            return [dict(event) for event in found]
        except body.UnreadableError as error:
            self._recorder.unreadable(str(error))
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        return []

    def _amended(self, answer: Response, sent: list[_Event]) -> Response:
        content = json.loads(answer.body)
        told: list[_Event] = content["events"]
        if len(told) != len(sent):
            return answer
        dropped: dict[str, list[int]] = {}
        for index, event in enumerate(told):
            if event["code"] == 404:
                dropped.setdefault(event["server_uuid"], []).append(index)
        for server_id, indexes in dropped.items():
            if self._delivered(server_id, [sent[i] for i in indexes]):
                for i in indexes:
                    told[i].update(status="completed", code=200)
        done = all(event["code"] == 200 for event in told)
        return answer.with_body(
            json.dumps(content).encode(), "200 OK" if done else None
        )

    def _delivered(
        self, server_id: str, events: list[Mapping[str, Any]]
    ) -> bool:
        try:
            location = self._reader.locate(server_id)
            if location is None or location.project_id not in self._projects:
                return False
            self._mover.deliver_events(location.server_id, events)
        except Exception as error:  # noqa: BLE001
            # Nova's answer stands: whoever sent the event hears that it was
            # dropped.
            self._recorder.fault(error)
            return False
        self._recorder.counters.add("event_delivered")
        return True
