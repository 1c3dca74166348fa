# SPDX-License-Identifier: Apache-2.0
"""The operator's commands, on the databases of a running Nova."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any
from unittest import mock

from state_policy.cmd import app
from tests.functional.harness import paste, surgery
from tests.functional.quarantine.support import KEEPER, OWNER, RequestCase


class CommandCase(RequestCase):
    """Runs commands beside the API that the test's Nova is."""

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


class TestCommands(CommandCase):
    """From the list to the purge."""

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
        shown = self.table("show", first)
        self.assertEqual(
            ("released", "nothing: it is released"),
            (shown["phase"], shown["next"]),
        )
        # nor is there anything to sweep: an id with a slip of the pen, say
        for words in ((), ("--settle-now",)):
            refused = self.command("sweep", "--server", first, *words, code=1)
            self.assertEqual(f"server {first} is not in quarantine\n", refused)
        refused = self.command("sweep", "--server", first, code=1)
        self.assertIn("not in quarantine", refused)
        self.assertNotIn("unexpected", refused)


class TestOptionsAndRules(CommandCase):
    """Where options come from, and who needs rules."""

    RULES = '"quarantine:purge": "@"\n'

    def write_paste(self, **options: str) -> None:
        """Give the API's paste file these options of the filter."""
        file = self.directory / "api-paste.ini"
        text = paste.installed().read_text()
        file.write_text(paste.with_filter(text, options))

    def complained(self, *words: str) -> tuple[str, list[Any]]:
        """Return the complaints and the table of a command that fails."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch("state_policy.drivers.nova.process.start"),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            found = app.main(["quarantine", *words, "-f", "json"])
        self.assertEqual(1, found, err.getvalue())
        return err.getvalue(), json.loads(out.getvalue())

    def test_options_of_the_paste_file(self) -> None:
        """What the API's filter does not enforce, no sweep does."""
        server = self.boot()
        self.conceal(server)
        self.write_paste(mode="audit")
        (row,) = self.table("sweep")
        self.assertEqual(("settle", "done"), (row["Step"], row["Result"]))
        (row,) = self.table("sweep")
        self.assertEqual(("purge", "not done"), (row["Step"], row["Result"]))
        self.assertFalse(surgery.row(server)["deleted"])
        self.write_paste(quarantine_projects=OWNER.project_id)
        self.assertEqual([], self.table("list"))
        self._switch(server)

    def _switch(self, server: str) -> None:
        """A switch that is there, and one that cannot be looked at."""
        switch = self.directory / "off"
        switch.touch()
        self.write_paste(disable_by_file_path=str(switch))
        self.assertEqual([], self.table("sweep"))
        long = self.directory / ("x" * 300)
        self.write_paste(disable_by_file_path=str(long), mode="audit")
        said, (row,) = self.complained("sweep")
        self.assertIn(f"disable_by_file_path: `{long}` cannot be looked", said)
        self.assertEqual("purge", row["Step"])
        # as in a request: it counts as absent, and the rule is carried out
        self.write_paste(disable_by_file_path=str(long))
        self.complained("sweep")
        self.assert_gone(server)

    def test_without_rules(self) -> None:
        """What is wrong with rules keeps no operator from a server."""
        servers = [self.boot() for _ in range(3)]
        for server in servers:
            self.conceal(server)
        first, second, third = servers
        self.policy_file.write_text('"server:stp": "@"\n')
        self.assertEqual(3, len(self.table("list")))
        self.assertEqual("concealed", self.table("show", first)["phase"])
        self.table("release", first)
        self.assert_owners(first)
        said, rows = self.complained("sweep")
        self.assertIn(f"no rule is asked: {self.policy_file}:1: ", said)
        self.assertEqual(
            {(second, "settle", "done"), (third, "settle", "done")},
            {(row["ID"], row["Step"], row["Result"]) for row in rows},
        )
        self.policy_file.unlink()
        said, rows = self.complained("sweep")
        self.assertIn("no rule is asked: [state_policy] policy_file: ", said)
        self.assertEqual([], rows)
        self.table("purge", second)
        self.assert_gone(second)
        self.policy_file.write_text(self.RULES)
        (row,) = self.table("sweep")
        self.assertEqual((third, "purge"), (row["ID"], row["Step"]))
        self.assert_gone(third)
