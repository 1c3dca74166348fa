# SPDX-License-Identifier: Apache-2.0
"""Metadata, tags and volumes of a real server that no rule names stay there.

Looked through are the log at every level, the records and actions of the
quarantine, its notifications, the answers and what ``explain`` shows.
"""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any
from unittest import mock

from state_policy.cmd import app
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.lines import listen

#: Stands in what nobody named.
MARK = "hunter2"


class TestFactsTold(base.NovaTestCase):
    """The rules name an item and a tag of each server."""

    RULES = """
"server:pause": "not (server.metadata:tier=gold and server.tag:gold)"
"server:delete:quarantine": "server.metadata:tier=gold and server.tag:gold"
"""
    QUARANTINE = base.QUARANTINED

    def notified(self) -> list[Any]:
        """Return the notifications that will be sent of ours."""
        told: list[Any] = []
        self.stub_out(
            "oslo_messaging.Notifier.info",
            lambda notifier, context, event, payload: (
                told.append((event, payload))
                if event.startswith("state_policy")
                else None
            ),
        )
        return told

    def explained(self, server: str) -> Any:
        out = io.StringIO()
        with (
            mock.patch("state_policy.drivers.nova.process.start"),
            contextlib.redirect_stdout(out),
        ):
            rules = ("--rules", str(self.policy_file))
            words = ("pause", "--server", server, "-f", "json")
            self.assertEqual(0, app.main(["explain", *rules, *words]))
        return json.loads(out.getvalue())

    def test_what_no_rule_names_is_nowhere(self) -> None:
        lines, told = listen(self), self.notified()
        server = self.boot()
        for path, body in (
            ("metadata", {"metadata": {"tier": "gold", "password": MARK}}),
            ("tags", {"tags": ["gold", MARK]}),
        ):
            answer = self.ask("PUT", f"/servers/{server}/{path}", body)
            self.assertEqual(200, answer.status, answer)
        refused = self.act(server, "pause")
        self.assertEqual(403, refused.status, refused)
        explained = self.explained(server)
        self.assertEqual(
            {
                "server.metadata": ["tier=gold", "..."],
                "server.tag": ["gold", "..."],
            },
            explained["facts"],
        )
        self.assertEqual(204, self.delete(server).status)
        self.assertTrue(surgery.row(server)["hidden"])
        decisions = [line for line in lines if '"has": ["tier=gold"]' in line]
        self.assertEqual(2, len(decisions), lines)
        self.assertTrue(told)
        written = [
            *lines,
            *map(str, told),
            *map(str, surgery.actions(server)),
            *map(str, surgery.events(server)),
            f"{refused.headers} {refused.body!r}",
            json.dumps(explained),
        ]
        for text in written:
            self.assertNotIn(MARK, text)
