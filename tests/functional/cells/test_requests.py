# SPDX-License-Identifier: Apache-2.0
"""Requests on servers of a cell that does not answer."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from tests.functional.cells.support import TIMEOUT, CellsCase
from tests.functional.harness import surgery

#: What a request may take beside the wait for the cell, on a busy machine.
SLACK = 2.0


class TestRefusing(CellsCase):
    """A database that refuses; a rule that asks whether the cell is up."""

    RULES = '"class:any": "not server.cell_up:false"\n'

    def test_only_that_cell(self) -> None:
        first, second = self.boot_on("one"), self.boot_on("two")
        trouble = self.trouble()
        trouble.refuse()
        with self.at_most(SLACK):
            answer = self.act(second, "pause")
        self.assertEqual(409, answer.status)
        self.assertEqual("30", answer.header("Retry-After"))
        for secret in ("cell2", "secret", "mysql", "two"):
            self.assertNotIn(secret, answer.message)
        self.assertEqual(202, self.act(first, "pause").status)
        # The cell is not tried again ...
        asked = trouble.asked
        self.assertEqual(409, self.act(second, "pause").status)
        self.assertEqual(asked, trouble.asked)
        # ... not even where it is well by now.
        trouble.end()
        self.assertEqual(409, self.act(second, "pause").status)
        self.assertEqual("active", surgery.row(second)["vm_state"])


class TestHanging(CellsCase):
    """A database that hangs, and comes back."""

    RULES = TestRefusing.RULES
    OPTIONS: ClassVar[dict[str, Any]] = {
        **CellsCase.OPTIONS,
        "cell_retry": 4.0,
    }

    def test_within_the_budget(self) -> None:
        first, second = self.boot_on("one"), self.boot_on("two")
        trouble = self.trouble()
        trouble.hang()
        with self.at_most(TIMEOUT + SLACK):
            self.assertEqual(409, self.act(second, "pause").status)
        asked = trouble.asked
        with self.at_most(SLACK):
            for _ in range(5):
                self.assertEqual(409, self.act(second, "pause").status)
        self.assertEqual(asked, trouble.asked)
        self.assertEqual(202, self.act(first, "pause").status)
        trouble.end()
        time.sleep(4.0)
        self.assertEqual(202, self.act(second, "pause").status)


class TestUnknown(CellsCase):
    """A rule that asks for something else: it cannot be decided."""

    RULES = (
        '"server:pause": "server.vm_state:active"\n'
        '"server:delete:quarantine": "server.vm_state:active"\n'
    )

    def test_allow(self) -> None:
        """The request goes on as it came; Nova says what Nova says."""
        server = self.boot_on("two")
        trouble = self.trouble()
        trouble.refuse()
        answer = self.act(server, "pause")
        self.assertEqual(500, answer.status)
        self.assertIn("computeFault", answer.json)
        answer = self.delete(server)
        self.assertEqual(500, answer.status)
        trouble.end()
        self.assertEqual([], self.records(server))
        self.assertEqual("active", surgery.row(server)["vm_state"])


class TestRefuseUnknown(CellsCase):
    """The same with ``on_unknown = refuse``."""

    RULES = TestUnknown.RULES
    OPTIONS: ClassVar[dict[str, Any]] = {
        **CellsCase.OPTIONS,
        "on_unknown": "refuse",
        "retry_after": 17,
    }

    def test_refuse(self) -> None:
        server = self.boot_on("two")
        trouble = self.trouble()
        trouble.hang()
        with self.at_most(TIMEOUT + SLACK):
            answer = self.act(server, "pause")
        self.assertEqual(503, answer.status)
        self.assertEqual("17", answer.header("Retry-After"))
        self.assertIn("serviceUnavailable", answer.json)
        trouble.end()


class TestConcealing(CellsCase):
    """A rule that needs no fact; the server cannot be moved."""

    RULES = '"server:delete:quarantine": "@"\n'

    def test_nothing_is_done(self) -> None:
        server = self.boot_on("two")
        trouble = self.trouble()
        trouble.refuse()
        with self.at_most(SLACK):
            answer = self.delete(server)
        self.assertEqual(500, answer.status)
        trouble.end()
        self.assertEqual([], self.records(server))
        self.assertFalse(surgery.row(server)["hidden"])
        self.assertEqual([server], self.listed())


class TestFacts(CellsCase):
    """What is known of a server of a cell that is down."""

    RULES = ""

    def test_cell_up_alone(self) -> None:
        from state_policy.engine.facts import CALLER
        from state_policy.engine.ports.reading import Caller

        server = self.boot_on("two")
        caller = Caller({"project_id": "p", "user_id": "u"})
        wanted = frozenset(
            {
                "server.cell_up",
                "server.vm_state",
                "server.flavor",
                "server.state_age",
                "cloud.stuck",
                "project.deletes:10m",
            }
        )
        reader = self.reader()
        location = reader.locate(server)
        found = reader.read(caller, location, wanted)
        self.assertEqual(wanted | {CALLER}, found.keys())
        self.assertIs(True, found["server.cell_up"])
        trouble = self.trouble()
        for fail in (trouble.refuse, trouble.hang):
            fail()
            reader = self.reader()
            location = reader.locate(server)
            with self.at_most(TIMEOUT + SLACK):
                found = reader.read(caller, location, wanted)
            # the deletes of a project are counted in the API's database
            self.assertEqual(
                {"server.cell_up", "project.deletes:10m", CALLER},
                set(found),
            )
            self.assertIs(False, found["server.cell_up"])
            self.assertEqual(
                1 if fail == trouble.hang else 0, reader.hanging()
            )
            trouble.end()
        self.wait_for(lambda: not reader.hanging(), "nothing hangs")

    def test_cell0(self) -> None:
        from state_policy.engine.ports.reading import Caller

        for name, _ in self.HOSTS:
            self.schedulable(name, False)
        server = self.boot(expected="ERROR")
        self.assertIsNone(surgery.row(server)["host"])
        reader = self.reader()
        location = reader.locate(server)
        keys = frozenset({"server.cell_up", "server.vm_state"})
        caller = Caller({"project_id": "p"})
        found = reader.read(caller, location, keys)
        self.assertEqual("error", found["server.vm_state"])
        self.trouble("cell0").refuse()
        found = reader.read(caller, reader.locate(server), keys)
        self.assertIs(False, found["server.cell_up"])
        self.assertNotIn("server.vm_state", found)
