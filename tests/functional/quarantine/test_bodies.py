# SPDX-License-Identifier: Apache-2.0
"""A delete that Nova would fail moves nothing, and fails as Nova has it.

What Nova does with the body of a DELETE, which has none to have, is asked of
Nova itself: where it gets as far as looking for the server, it takes it.
"""

from __future__ import annotations

import io
import uuid
from typing import Any

import webob

from tests.functional import base
from tests.functional.harness import paste, surgery
from tests.functional.quarantine.support import RequestCase

JSON = {"Content-Type": "application/json"}

#: A body and headers, and what Nova answers for a server that is not there.
BODIES: tuple[tuple[bytes | None, dict[str, str], int], ...] = (
    (None, {}, 404),
    (b"", JSON, 404),
    (b"{}", JSON, 404),
    (b'{"a": 1}', JSON, 404),
    (b"no json", JSON, 404),
    (b"\x00", JSON, 404),
    ("é".encode(), JSON, 404),
    (b"no json", {"Content-Type": "text/plain"}, 404),
    (b"\xff", JSON, 500),
    (b"\xff", {"Content-Type": "text/plain"}, 500),
    (b"{}\xc3", JSON, 500),
    ("é".encode("utf-16"), JSON, 500),
    (b"{}", {"Content-Type": "text/xml"}, 415),
    (b"\xff", {"Content-Type": "application/octet-stream"}, 415),
)
#: Other ways to ask for the same.
METHODS = (
    ("DELETE", "?a=%ff"),
    ("GET", "?_method=DELETE"),
    ("HEAD", "?_method=DELETE"),
)


class TestBodies(RequestCase):
    """Rules that move whatever is deleted."""

    RULES = '"server:delete:quarantine": "@"\n'
    OPTIONS = {"max_body": 4096}

    def setUp(self) -> None:
        """Load a pipeline without the filter."""
        super().setUp()
        self.plain = self.load(paste.installed().read_text())

    def send(
        self,
        server: str,
        sent: tuple[bytes | None, dict[str, str], int],
        way: tuple[str, str] = ("DELETE", ""),
        *,
        app: Any = None,
        promised: int = 0,
    ) -> base.Answer:
        """Send a request.

        :param promised: so many bytes more are promised than come
        """
        content, headers, _ = sent
        method, query = way
        asked = webob.Request.blank(
            f"/v2.1/servers/{server}{query}", method=method
        )
        asked.headers.update(base.OWNER.headers())
        if content is not None:
            asked.environ["wsgi.input"] = io.BytesIO(content)
            asked.environ["CONTENT_LENGTH"] = str(len(content) + promised)
        asked.headers.update(headers)
        found = asked.get_response(app or self.api_fixture.app())
        return base.Answer(
            found.status_int, tuple(found.headerlist), found.body
        )

    def taken_by_nova(self, *sent: Any, **more: Any) -> tuple[bool, int]:
        """Return whether Nova looks for the server, and its answer."""
        server = str(uuid.uuid4())
        status = self.send(server, *sent, app=self.plain, **more).status
        return status == 404, status

    def judge(self, way: tuple[str, str], bodies: tuple[Any, ...]) -> None:
        """Compare what becomes of a server with what Nova would do."""
        server = self.boot()
        for sent in bodies:
            taken, status = self.taken_by_nova(sent, way)
            case = (way, sent)
            self.assertEqual(sent[2], status, case)
            answer = self.send(server, sent, way)
            row = surgery.row(server)
            self.assertEqual(taken, bool(row["hidden"]), case)
            if taken:
                self.assertEqual(204, answer.status, case)
                server = self.boot()
                continue
            theirs = self.send(server, sent, way, app=self.plain)
            self.assertEqual(theirs.status, answer.status, case)
            self.assertEqual(0, surgery.row(server)["deleted"])

    def test_what_nova_fails_moves_nothing(self) -> None:
        self.judge(("DELETE", ""), BODIES[5:])

    def test_what_nova_takes_moves(self) -> None:
        self.judge(("DELETE", ""), BODIES[:5])

    def test_other_ways_to_ask(self) -> None:
        for way in METHODS:
            self.judge(way, (BODIES[8], BODIES[2]))

    def test_a_body_that_ends_early(self) -> None:
        server = self.boot()
        sent = (b"{", JSON, 0)
        taken, status = self.taken_by_nova(sent, promised=9)
        self.assertFalse(taken)
        answer = self.send(server, sent, promised=9)
        self.assertEqual(status, answer.status)
        self.assertEqual(0, surgery.row(server)["hidden"])
        self.assertEqual(0, surgery.row(server)["deleted"])

    def test_a_long_body_is_no_way_round(self) -> None:
        """Longer than what is read of an action's, and Nova takes it."""
        server = self.boot()
        sent = (b" " * 114688, JSON, 404)
        self.assertEqual((True, 404), self.taken_by_nova(sent))
        self.assertEqual(204, self.send(server, sent).status)
        self.assertEqual(1, surgery.row(server)["hidden"])
