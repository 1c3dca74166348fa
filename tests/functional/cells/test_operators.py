# SPDX-License-Identifier: Apache-2.0
"""What operators' commands see and do while a cell does not answer."""

from __future__ import annotations

import contextlib
import io
import json
import time
from typing import Any
from unittest import mock

from nova import context, objects

from state_policy.cmd import app
from tests.functional.cells.support import TIMEOUT, CellsCase
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER

#: Seconds that a list has in these tests, for a cell that hangs.
LIST = 2.5


class TestCommands(CellsCase):
    """One settled server in each cell, then a cell that is down."""

    def setUp(self) -> None:
        super().setUp()
        self.stub_out("state_policy.drivers.nova.moving.finding.BUDGET", LIST)

    def command(self, *words: str) -> tuple[int, Any, str]:
        """Return the exit code, the rows and the complaints of a command."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch("state_policy.drivers.nova.process.start"),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = app.main(["quarantine", *words])
        rows = json.loads(out.getvalue()) if out.getvalue() else None
        return code, rows, err.getvalue()

    def ids(self, *words: str) -> tuple[int, list[str], str]:
        """Return the exit code, the servers and the complaints."""
        code, rows, err = self.command(*words, "-f", "json")
        return code, [row["ID"] for row in rows], err

    def test_list_and_sweep(self) -> None:
        first, second = self.boot_on("one"), self.boot_on("two")
        for server in (first, second):
            self.assertEqual(204, self.delete(server).status)
        code, seen, err = self.ids("list")
        self.assertEqual((0, {first, second}), (code, set(seen)))
        self.assertNotIn("could not be seen", err)
        trouble = self.trouble()
        for fail in (trouble.refuse, trouble.hang):
            fail()
            with self.at_most(LIST + 10):
                code, seen, err = self.ids("list")
            self.assertEqual((1, [first]), (code, seen))
            self.assertIn("could not be seen: cell cell2\n", err)
            self.assertNotIn("secret", err)
            trouble.end()
        trouble.refuse()
        code, rows, err = self.command("sweep", "-f", "json")
        self.assertEqual(1, code)
        self.assertEqual(
            [(first, "settle", "done")],
            [(row["ID"], row["Step"], row["Result"]) for row in rows],
        )
        self.assertIn("could not be seen: cell cell2\n", err)
        for words in (("release",), ("purge",)):
            code, rows, err = self.command(*words, second, "-f", "json")
            self.assertEqual((1, []), (code, rows))
            self.assertIn(f"server {second} cannot be read", err)
        trouble.end()
        self.assertTrue(surgery.row(second)["hidden"])
        code, seen, err = self.ids("sweep")
        self.assertEqual((0, [second]), (code, seen))
        self.assertNotIn("could not be seen", err)
        self.assert_settled(first)
        self.assert_settled(second)
        # what they use: the servers by their mappings, the rest by rows
        for complaint, cores in (("", 2), ("could not be seen: cell ce", 1)):
            code, rows, err = self.command("list", "--usage", "-f", "json")
            self.assertEqual(int(bool(complaint)), code)
            self.assertIn(complaint, err)
            self.assertEqual(
                {"instances": 2, "cores": cores, "ram": 512 * cores},
                {row["Resource"]: row["In Use"] for row in rows},
            )
            trouble.refuse()

    def test_a_cell_fails_between_list_and_look(self) -> None:
        """The server is reported, and the others' turn comes."""
        first, second = self.boot_on("one"), self.boot_on("two")
        for server in (first, second):
            self.assertEqual(204, self.delete(server).status)
        trouble = self.trouble()
        original = type(self.mover).held

        def held(*args: Any) -> Any:
            found = original(*args)
            trouble.hang()
            return found

        self.stub_out("state_policy.drivers.nova.moving.Mover.held", held)
        began = time.monotonic()
        code, rows, err = self.command("sweep", "-f", "json")
        self.assertLess(time.monotonic() - began, 4 * TIMEOUT + 10)
        self.assertEqual(1, code)
        self.assertEqual(
            {(first, "settle", "done"), (second, "sweep", "failed")},
            {(row["ID"], row["Step"], row["Result"]) for row in rows},
        )
        self.assertIn(second, err)
        # nor was it known which deletes have not ended there
        self.assertIn("could not be seen: cell cell2\n", err)
        trouble.end()
        self.assert_settled(first)
        self.assertEqual(KEEPER.project_id, self.mapped(second))
        self.assertTrue(surgery.row(second)["hidden"])

    def test_a_conceal_in_the_other_cell(self) -> None:
        """A server in a cell that is well is moved while another is down."""
        first, second, third = map(self.boot_on, ("one", "two", "two"))
        group = self.owner.post_server_groups(
            {"name": "group", "policy": "anti-affinity"}
        )["id"]
        admin = context.get_admin_context()
        objects.InstanceGroup.add_members(admin, group, [first, third])
        self.assertEqual(204, self.delete(second).status)
        surgery.make_older(second, hours=1)
        trouble = self.trouble()
        for fail in (trouble.refuse, trouble.hang):
            fail()
            with self.at_most(4 * TIMEOUT + 3):
                status = self.delete(first).status
            trouble.end()
            self.assertEqual(204, status)
            self.assert_concealed(first)
            # where the other member is nobody knows
            fail()
            _, (row,), _ = self.command(
                "release", first, "--dry-run", "-f", "json"
            )
            trouble.end()
            self.assertIn("its server group could not be read", row["Why"])
            _, (row,), _ = self.command("release", first, "-f", "json")
            self.assertEqual("it was asked for", row["Why"])
            self.assert_owners(first)
