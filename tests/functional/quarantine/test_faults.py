# SPDX-License-Identifier: Apache-2.0
"""What went wrong when servers were first moved on a cloud, a test each.

``FAULTS`` says which test shows that a fault is mended. Those that are in no
other module are here.
"""

from __future__ import annotations

import importlib
from typing import Any

import sqlalchemy as sa
from nova import context, objects
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_utils import timeutils

from state_policy.quarantine import record
from state_policy.quarantine.record import Kind
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import RequestCase

_HERE = "tests.functional.quarantine.test_"

#: Fault: module and test of each part of it.
FAULTS: dict[str, tuple[tuple[str, str], ...]] = {
    "1 compare-and-swap alone lets many win, each with a record": (
        (_HERE + "request", "TestParallel.test_one_record"),
        (_HERE + "killed", "test_killed"),
    ),
    "1 a raw UPDATE does not set updated_at": (
        (_HERE + "faults", "TestRow.test_its_date_moves"),
    ),
    "2 a bad microversion is refused after the server is gone": (
        (_HERE + "refused", "TestRefused.test_by_rights_and_form"),
    ),
    "3 placement is down: an error although the server is concealed": (
        (_HERE + "ports", "TestSlow.test_placement_is_down"),
    ),
    "3 Neutron hangs, and the client hangs with it": (
        (_HERE + "ports", "TestSlow.test_neutron_hangs"),
    ),
    "4 killed half way, ports stay bound until the sweep": (
        (_HERE + "sweep", "TestHalfDone.test_conceal"),
        (_HERE + "killed", "test_killed"),
    ),
    "5 a half-done release is taken for a half-done conceal": (
        (_HERE + "sweep", "TestHalfDone.test_release"),
    ),
    "6 deleted while hidden: mapping and request spec stay": (
        (_HERE + "move", "TestBlockedDelete.test_delete_ends_while_hidden"),
    ),
    "7 settled under a running delete: the row is stuck": (
        (_HERE + "sweep", "TestStranded.test_purge_climbs"),
        (_HERE + "sweep", "TestStranded.test_settled_by_deadline"),
    ),
    "8 an event that a crash left unfinished counts as running": (
        (_HERE + "sweep", "TestCrashed.test_stale_build_event"),
        (_HERE + "faults", "TestEvents.test_stale_delete_event"),
    ),
    "8 nobody can settle one server by hand": (
        (_HERE + "commands", "TestCommands.test_story"),
    ),
    "9 headers of /v2, and of a 204, are not Nova's": (
        (_HERE + "request", "TestForms.test_v2"),
        (
            "tests.functional.nova_reading.test_answers",
            "TestSuccesses.test_successes",
        ),
    ),
    "10 events of others attach to our action": (
        (_HERE + "faults", "TestEvents.test_of_others_on_our_action"),
    ),
    "10 the owner of a released server reads what he must not": (
        (_HERE + "sweep", "TestOwnerAfterRelease.test_actions"),
    ),
    "11 a port is bound after the release": (
        (_HERE + "ports", "TestRelease.test_bound_late"),
    ),
    "12 the search for deletes reads the whole table": (
        (_HERE + "faults", "TestSearch.test_by_its_index"),
    ),
    "12 members of the quarantine project can only look": (
        (_HERE + "faults", "TestRow.test_members_only_look"),
    ),
    "13 a server that hangs keeps its build slot": (
        (_HERE + "faults", "TestSlot.test_it_is_kept"),
    ),
}


def test_each_fault_has_its_test() -> None:
    """All thirteen are there, and the tests that they name."""
    assert {int(fault.split()[0]) for fault in FAULTS} == set(range(1, 14))
    for parts in FAULTS.values():
        for module, path in parts:
            found: Any = importlib.import_module(module)
            for name in path.split("."):
                found = getattr(found, name)
            assert callable(found)


class TestRow(RequestCase):
    """The row of a server that was moved."""

    def test_its_date_moves(self) -> None:
        server = self.boot()
        for move in (lambda: self.delete(server), self.sweep):
            surgery.make_older(server, minutes=10)
            before = surgery.row(server)["updated_at"]
            move()
            after = surgery.row(server)["updated_at"]
            self.assertGreater((after - before).total_seconds(), 500)
        self.assert_settled(server)

    def test_members_only_look(self) -> None:
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        shown = self.ask("GET", f"/servers/{server}", who=base.INSPECTOR)
        self.assertEqual(200, shown.status)
        self.assertTrue(shown.json["server"]["locked"])
        for action, status in (("unlock", 403), ("os-stop", 409)):
            answer = self.act(server, action, who=base.INSPECTOR)
            self.assertEqual(status, answer.status, action)
        answer = self.delete(server, who=base.INSPECTOR)
        self.assertEqual(409, answer.status)
        self.assert_settled(server)


class TestEvents(RequestCase):
    """Events that are not what they look like."""

    def test_stale_delete_event(self) -> None:
        """Of a delete that a crash ended; the server is active again."""
        server = self.boot()
        with surgery.cell_of(server) as cell:
            objects.InstanceActionEvent(
                cell,
                event="compute_terminate_instance",
                start_time=surgery.row(server)["created_at"],
                host="compute",
            ).create(server, surgery.actions(server)[0]["request_id"])
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        self.assertEqual((), self.records(server)[-1].stranded)

    def test_of_others_on_our_action(self) -> None:
        """A compute that restarts has a context without a project."""
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        name = "compute_reboot_instance"
        with surgery.cell_of(server) as cell:
            objects.InstanceActionEvent.event_start(cell, server, name)
        ours = surgery.actions(server)[-1]
        self.assertEqual("quarantine", ours["action"])
        self.assertEqual(ours["id"], self._action_of(server, name))
        self._read_right(server)
        # it runs, as far as anybody can know
        self.assertEqual([], self.swept())
        with surgery.cell_of(server) as cell:
            objects.InstanceActionEvent.event_finish_with_failure(
                cell, server, name, exc_tb="not ours"
            )
        self._read_right(server)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)

    def _action_of(self, server: str, name: str) -> Any:
        (found,) = [
            event["action_id"]
            for event in surgery.events(server)
            if event["event"] == name
        ]
        return found

    def _read_right(self, server: str) -> None:
        found = record.of(self.mover.look(server))
        assert found is not None
        self.assertEqual(Kind.CONCEAL, found.kind)


class TestSearch(RequestCase):
    """Deletes that have not ended are looked for every minute."""

    def test_by_its_index(self) -> None:
        servers = [self.boot() for _ in range(2)]
        surgery.set_row(servers[0], task_state="deleting")
        query, actions = self._queries()
        # SQLite refuses a query that cannot use the index it is told to.
        index = "instances_task_state_updated_at_idx"
        told = query.replace(
            "FROM instances", f"FROM instances INDEXED BY {index}"
        )
        self.assertIn(f"{index} (task_state=?", self._plan(servers[0], told))
        plan = self._plan(servers[0], actions)
        # either of the two that begin with the server
        self.assertIn("_idx (instance_uuid=?", plan)
        self.assertNotIn("SCAN instance_actions", plan)
        # however many servers are being deleted: thousands, on a bad day
        surgery.set_row(servers[1], task_state="deleting")
        self.assertEqual(2, len(self._queries()))
        self._first_of_the_attempt(servers[0])

    def _first_of_the_attempt(self, server: str) -> None:
        """Neither one that failed before, nor one that repeats it."""
        for name, request_id, message in (
            ("delete", "req-failed", "Error"),
            ("delete", "req-first", None),
            ("lock", "req-lock", None),
            ("delete", "req-second", None),
        ):
            self._act(server, name, request_id, message)
        self.assertEqual(["req-first"], self._pending())
        self._act(server, "restore", "req-restore", None)
        self.assertEqual([], self._pending())
        self._act(server, "delete", "req-last", None)
        self.assertEqual(["req-last"], self._pending())

    def _act(
        self, server: str, name: str, request_id: str, message: str | None
    ) -> None:
        now = timeutils.utcnow()
        values = {
            "action": name,
            "instance_uuid": server,
            "request_id": request_id,
            "message": message,
            "start_time": now,
            "created_at": now,
            "deleted": 0,
        }
        table = models.InstanceAction.__table__
        surgery.execute(server, sa.insert(table).values(**values))

    def _pending(self) -> list[str]:
        found = self.mover.pending_deletes((base.QUARANTINE_PROJECT,), 0)
        return [one.request_id for one in found.deletes]

    def _queries(self) -> list[str]:
        """Return what the search asks of the cell, in order."""
        with self.statements(every_thread=True) as statements:
            self.mover.pending_deletes((base.QUARANTINE_PROJECT,), 0)
        return [
            text
            for name, text in statements.seen
            if name == "cell1"
            and ("task_state = " in text or "FROM instance_actions" in text)
        ]

    def _plan(self, server: str, query: str) -> str:
        with surgery.cell_of(server) as cell:
            engine: sa.Engine = main_db.get_engine(context=cell)
            with engine.connect() as connection:
                rows = connection.exec_driver_sql(
                    "EXPLAIN QUERY PLAN " + query, ("",) * query.count("?")
                )
                return "\n".join(str(row) for row in rows)


class TestSlot(RequestCase):
    """The quarantine frees no host from what hangs on it; the page says so."""

    def _setup_services(self) -> None:
        # In native threads builds and snapshots share their slots.
        self.flags(max_concurrent_builds=1, max_concurrent_snapshots=1)
        super()._setup_services()

    def test_it_is_kept(self) -> None:
        first, hold = self.boot_held()
        self.assertEqual(204, self.delete(first).status)
        self.assert_concealed(first)
        second = self.boot(expected=None)
        self.wait_for(lambda: self._in_cell(second), "a host")
        self.wait_task(second, "scheduling")
        self.assertEqual([], self.swept())
        self.assertEqual("building", surgery.row(second)["vm_state"])
        self.assertEqual([], self.guests())
        hold.release()
        self._wait_for_state_change({"id": second}, "ACTIVE")
        self.assertEqual({first, second}, set(self.guests()))

    def _in_cell(self, server: str) -> bool:
        found = objects.InstanceMapping.get_by_instance_uuid(
            context.get_admin_context(), server
        )
        return found.cell_mapping is not None
