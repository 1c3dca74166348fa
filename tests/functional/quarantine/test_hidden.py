# SPDX-License-Identifier: Apache-2.0
"""A concealed server is as absent, by every address that has an id in it.

Each request is sent for the concealed server and for one that never was; the
answers must be the same byte for byte, and the server as it was.
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from nova import objects
from nova.conductor.tasks import cross_cell_migrate
from nova.db.main import models

from state_policy.engine.operations import OPERATIONS
from state_policy.quarantine import record as records
from state_policy.quarantine import release
from tests.functional import base
from tests.functional.harness import collation, surgery
from tests.functional.harness.keystone import Person
from tests.functional.harness.sameness import written
from tests.functional.nova_reading import requests
from tests.functional.quarantine.support import KEEPER, RequestCase

COLLEAGUE = Person("colleague", base.OWNER_PROJECT)
#: Whom Nova lets list the migrations of his project.
MANAGER = Person(
    "manager", base.OWNER_PROJECT, ("manager", "member", "reader")
)

#: Doors that are no operation of their own: what Nova does not route, what
#: it does by another method or another address, and what it knows no more.
OTHERS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/servers/{id}%0A", None),
    ("GET", "/servers/{id}.json", None),
    ("GET", "/servers/{id}/", None),
    ("GET", "/servers/{id}/allowed-actions", None),
    ("GET", "/servers/{id}/os-virtual-interfaces", None),
    ("GET", "/servers/{id}/os-instance-actions/req-1", None),
    ("GET", "/servers/{id}?_method=DELETE", None),
    ("PATCH", "/servers/{id}", None),
    ("DELETE", "/os-volumes_boot/{id}", None),
    ("GET", "/os-volumes_boot/{id}", None),
    ("PUT", "/os-volumes_boot/{id}", {"server": {"name": "n"}}),
    ("POST", "/os-volumes_boot/{id}/action", {"os-stop": None}),
    ("POST", "/servers/{id}/action", {"noSuchAction": None}),
    ("POST", "/servers/{id}/action", {"os-stop": None, "pause": None}),
    ("POST", "/servers/{id}/action", b'{"os-st'),
    ("POST", "/servers/{id}/action", b'{"os-\\u0073top": null}'),
)

Asked = tuple[str, str, Any, str]


class HiddenCase(RequestCase):
    """Compares a server with one that never was."""

    def _compare(
        self, server: str, asked: Asked, who: Person, prefix: str = "/v2.1"
    ) -> None:
        method, path, body, version = asked
        hidden, absent = (
            written(
                self.ask(
                    method,
                    path.format(id=one, ID=one.upper()),
                    body,
                    who=who,
                    prefix=prefix,
                    microversion=version if prefix == "/v2.1" else None,
                ),
                one,
            )
            for one in (server, str(uuid.uuid4()))
        )
        self.assertEqual(absent, hidden, (asked, who, prefix))
        self.assertGreaterEqual(hidden[0], 400, (asked, who, prefix))


class TestEveryAddress(HiddenCase):
    """For its owner, for readers of his project, for strangers."""

    def test_as_absent(self) -> None:
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        concealed = self._state(server)
        self._compare_all(server)
        self.assertEqual(concealed, self._state(server))
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        settled = self._state(server)
        for asked in _other_doors():
            self._compare(server, asked, base.OWNER)
        self.assertEqual(settled, self._state(server))

    def _compare_all(self, server: str) -> None:
        for asked in _plain_doors():
            self._compare(server, asked, base.OWNER)
        for asked in _other_doors():
            for who in (COLLEAGUE, base.READER, base.FOREIGNER):
                self._compare(server, asked, who)
            method, path, body, version = asked
            capitals = path.replace("{id}", "{ID}")
            for other in (
                (method, capitals, body, version),
                (method, f"/{base.OWNER_PROJECT}{path}", body, version),
            ):
                self._compare(server, other, base.OWNER)
            self._compare(server, asked, base.OWNER, prefix="/v2")

    def _state(self, server: str) -> tuple[Any, ...]:
        return (
            surgery.row(server),
            surgery.actions(server),
            surgery.events(server),
        )


class TestCapitals(HiddenCase):
    """Where the database finds ids in capitals, Nova does, and so do we."""

    def test_as_any_other(self) -> None:
        server = self.boot()
        path = f"/servers/{server.upper()}"
        with collation.without_case():
            self.assertEqual(200, self.ask("GET", path).status)
            answer = self.ask("DELETE", path)
            self.assertEqual((204, b""), (answer.status, answer.body))
            for who, status in (
                (base.OWNER, 404),
                (base.READER, 404),
                (base.FOREIGNER, 404),
                (base.OPERATOR, 200),
                (base.INSPECTOR, 404),
            ):
                found = self.ask("GET", path, who=who)
                self.assertEqual(status, found.status, who)
            for asked in _other_doors():
                method, door, body, version = asked
                capitals = door.replace("{id}", "{ID}")
                changed = (method, capitals, body, version)
                self._compare(server, changed, base.OWNER)
        self.assert_concealed(server)
        self.assertEqual(1, len(self.records(server)))

    def test_as_an_accent(self) -> None:
        """Where Nova does not look at the form, the database has the say."""
        server = next(one for one in iter(self.boot, "") if "d" in one)
        path = f"/servers/{server.replace('d', '%F0')}/action"
        with collation.without_case():
            answer = self.ask("POST", path, {"os-stop": None})
            self.assertEqual(202, answer.status)
            self.wait_for(
                lambda: surgery.row(server)["vm_state"] == "stopped", "stopped"
            )
            self.wait_task(server, None)
            self.assertEqual(204, self.delete(server).status)
            self.assert_concealed(server)
            before = surgery.row(server)
            for who in (base.OWNER, base.FOREIGNER):
                answer = self.ask("POST", path, {"os-start": None}, who=who)
                self.assertEqual(404, answer.status, answer.body)
            self.assertEqual(before, surgery.row(server))


class TestUsage(RequestCase):
    """The one place where a concealed server is seen; the page says so."""

    def test_until_it_is_settled(self) -> None:
        server = self.boot()
        # Nova cuts the end of the span to the second that is now, and would
        # not see a server that was launched within it.
        surgery.make_older(server, minutes=1)
        self.assertEqual([server], self._used_by(base.OWNER))
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual([server], self._used_by(base.OWNER))
        self.assertEqual(["settle"], self.swept())
        self.assertEqual([], self._used_by(base.OWNER))
        self.assertEqual([server], self._used_by(base.INSPECTOR))

    def _used_by(self, who: Person) -> list[str]:
        span = "start=2020-01-01T00:00:00&end=2100-01-01T00:00:00"
        path = f"/os-simple-tenant-usage/{who.project_id}?{span}"
        usage = self.ask("GET", path, who=who).json["tenant_usage"]
        return [one["instance_id"] for one in usage.get("server_usages", ())]


class TestMigrations(RequestCase):
    """Nova lists them by project; a server keeps those of its past."""

    def test_not_while_it_is_in_quarantine(self) -> None:
        self.flags(allow_resize_to_same_host=True)
        server, other = self.boot(), self.boot()
        for one in (server, other):
            self._resize(one)
        surgery.make_older(server, hours=1)
        before = self._rows(server)
        self._assert_listed(server, other)
        self.assertEqual(204, self.delete(server).status)
        self._assert_listed(other)
        hidden = [{**m, "project_id": KEEPER.project_id} for m in before]
        self.assertEqual(hidden, self._rows(server))
        # As an operation that runs makes one, in its owner's name.
        late = self._made(server, base.OWNER_PROJECT)
        self.assertEqual(["settle"], self.swept())
        self._assert_listed(other)
        # And this in an operator's, whose it stays.
        operators = self._made(server, base.QUARANTINE_PROJECT)
        expected = sorted([*before, late, operators], key=_uuid)
        self._write_anew(server)
        for _ in range(2):
            self._release(server)
            self._assert_listed(server, server, other)
            # Compute goes by the times of their last changes.
            self.assertEqual(expected, self._rows(server))
            self.assertEqual(204, self.delete(server).status)
            self._assert_listed(other)

    def _release(self, server: str) -> None:
        seen = self.mover.look(server)
        release.release(self.mover, seen, records.of(seen))
        self.assert_owners(server)

    def _rows(self, server: str) -> list[dict[str, Any]]:
        table = models.Migration.__table__
        query = sa.select(table).where(table.c.instance_uuid == server)
        found = surgery.execute(server, query)
        return sorted(
            [{k: v for k, v in row.items() if k != "id"} for row in found],
            key=_uuid,
        )

    def _write_anew(self, server: str) -> None:
        """As a move to another cell does: they get new ids."""
        table = models.Migration.__table__
        with surgery.cell_of(server) as cell:
            found = objects.MigrationList.get_by_filters(
                cell, {"instance_uuid": server}
            )
            surgery.execute(
                server, sa.delete(table).where(table.c.instance_uuid == server)
            )
            for one in found:
                clone = cross_cell_migrate.clone_creatable_object(cell, one)
                clone.create()

    def _made(self, server: str, project: str) -> dict[str, Any]:
        values = {
            "uuid": str(uuid.uuid4()),
            "migration_type": "resize",
            "status": "confirmed",
            "hidden": False,
            "cross_cell_move": False,
            "project_id": project,
            "user_id": "somebody",
            "created_at": datetime.datetime(2026, 1, 1),
            "updated_at": datetime.datetime(2026, 1, 1),
            "instance_uuid": server,
            "deleted": 0,
        }
        query = sa.insert(models.Migration.__table__).values(**values)
        surgery.execute(server, query)
        return next(
            row for row in self._rows(server) if _uuid(row) == values["uuid"]
        )

    def _resize(self, server: str) -> None:
        flavor = self.owner.get_flavors()[1]["id"]
        resize = {"resize": {"flavorRef": flavor}}
        self.assertEqual(202, self.act(server, resize).status)
        self.wait_for(
            lambda: surgery.row(server)["vm_state"] == "resized", "resized"
        )
        self.assertEqual(204, self.act(server, "confirmResize").status)
        self.wait_for(
            lambda: surgery.row(server)["vm_state"] == "active", "confirmed"
        )
        self.wait_task(server, None)

    def _assert_listed(self, *expected: str) -> None:
        path = f"/os-migrations?project_id={base.OWNER_PROJECT}"
        answer = self.ask("GET", path, who=MANAGER, microversion="2.90")
        self.assertEqual(200, answer.status, answer.body)
        self.assertEqual(
            sorted(expected),
            sorted(m["instance_uuid"] for m in answer.json["migrations"]),
        )


def _uuid(migration: dict[str, Any]) -> str:
    return str(migration["uuid"])


def _plain_doors() -> Iterator[Asked]:
    """Give a request of every operation."""
    for operation in OPERATIONS.values():
        yield (
            operation.method,
            requests.path(operation, "{id}"),
            requests.body(operation),
            requests.microversion(operation),
        )


def _other_doors() -> Iterator[Asked]:
    for name in ("show", "delete", "stop", "update", "list_tags"):
        operation = OPERATIONS[name]
        yield (
            operation.method,
            requests.path(operation, "{id}"),
            requests.body(operation),
            requests.microversion(operation),
        )
    for method, path, body in OTHERS:
        yield method, path, body, "2.90"
