# SPDX-License-Identifier: Apache-2.0
"""The operator's commands, on the databases of a running Nova."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any
from unittest import mock

from state_policy.cmd import app
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, OWNER, RequestCase


class TestCommands(RequestCase):
    """From the list to the purge."""

    def command(self, *words: str, code: int = 0) -> str:
        """Run ``state-policy quarantine``; return what it wrote."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch("state_policy.drivers.nova.process.start"),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            found = app.main(["quarantine", *words])
        self.assertEqual(code, found, err.getvalue())
        return out.getvalue() if code == 0 else err.getvalue()

    def table(self, *words: str, code: int = 0) -> Any:
        """Run a command and return its table."""
        return json.loads(self.command(*words, "-f", "json", code=code))

    def test_story(self) -> None:
        server, hold = self.boot_held()
        self.assertEqual([], self.table("list"))
        self.assertIn(
            "not in quarantine", self.command("show", server, code=1)
        )
        self.assertIn(
            "not in quarantine", self.command("purge", server, code=1)
        )
        self.assertEqual(204, self.delete(server).status)
        (row,) = self.table("list")
        self.assertEqual(
            (server, "concealed", OWNER.project_id, "building"),
            (row["ID"], row["Phase"], row["Owner Project"], row["VM State"]),
        )
        self.assertIn("do_build_and_run_instance", row["Running"])
        # a purge has to wait for what runs, or for a word of the operator's
        refused = self.command("purge", server, code=1)
        self.assertIn("still concealed", refused)
        self.assertEqual([], self.table("sweep"))
        self.command("sweep", "--settle-now", code=2)
        words = ("sweep", "--server", server, "--settle-now")
        (row,) = self.table(*words, "--dry-run")
        self.assertEqual("settle", row["Step"])
        self.assert_concealed(server)
        (row,) = self.table(*words)
        self.assertEqual(("settle", "done"), (row["Step"], row["Result"]))
        self.assert_settled(server)
        shown = self.table("show", server)
        self.assertEqual("settled", shown["phase"])
        self.assertEqual(OWNER.user_id, shown["owner_user"])
        self.assertEqual("delete", shown["operation"])
        self.assertEqual("server:delete:quarantine", shown["rule"])
        self.assertIn("spawning", shown["stranded"])
        self.assertFalse(shown["completed"])
        usage = {
            u["Resource"]: u["In Use"] for u in self.table("list", "--usage")
        }
        self.assertEqual(1, usage["instances"])
        self.table("purge", "--dry-run", server)
        self.assertFalse(surgery.row(server)["deleted"])
        self.table("purge", server)
        hold.release()
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.assertEqual([], self.table("list"))
        self.assertIn("deleted", self.command("release", server, code=1))

    def test_release(self) -> None:
        first, second = self.boot(), self.boot()
        for server in (first, second):
            self.assertEqual(204, self.delete(server).status)
        self.table("release", "--dry-run", first)
        self.assert_concealed(first)
        # one that cannot be released does not keep the others
        refused = self.command(
            "release", first, KEEPER.project_id, second, code=1
        )
        self.assertIn("not in quarantine", refused)
        self.assert_owners(first)
        self.assert_owners(second)
        self.assertEqual({first, second}, set(self.listed()))
