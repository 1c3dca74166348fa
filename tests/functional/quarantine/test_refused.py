# SPDX-License-Identifier: Apache-2.0
"""Who may not delete is answered by Nova, and nothing is done.

The rule is true for every delete. Each request is sent through the pipeline
with the filter and through one without it; both answers must be the same byte
for byte, and the server's row, actions and events as they were.
"""

from __future__ import annotations

from typing import Any

from nova import context, objects

from tests.functional import base
from tests.functional.harness import paste, surgery
from tests.functional.harness.keystone import Person
from tests.functional.harness.sameness import written
from tests.functional.quarantine.support import OWNER, RequestCase

Who = tuple[Person, dict[str, Any], int]

#: Caller, more of the request, and Nova's answer.
REFUSED: tuple[Who, ...] = (
    (base.READER, {}, 403),
    (base.NOBODY, {}, 403),
    (base.FOREIGNER, {}, 404),
    (base.INSPECTOR, {}, 404),
    (base.OWNER, {"microversion": "9.9"}, 406),
    (base.OWNER, {"microversion": "new"}, 400),
    (base.OWNER, {"headers": {"Content-Type": "text/xml"}}, 415),
)

FORCE = {"forceDelete": None}


class RefusedCase(RequestCase):
    """Sends what Nova refuses, with the filter and without it."""

    RULES = (
        '"server:delete:quarantine": "@"\n'
        '"server:force_delete:quarantine": "@"\n'
    )

    def setUp(self) -> None:
        """Load a pipeline without the filter, and one that explains nothing.

        What Nova refuses with 409 keeps its text and gains an explanation,
        unless that is switched off.
        """
        super().setUp()
        text = paste.installed().read_text()
        self.plain = self.load(text)
        self.silent = self.load(paste.with_filter(text, {"explain": "false"}))

    def compare(
        self,
        server: str,
        who: Person,
        status: int,
        app: Any = None,
        **more: Any,
    ) -> None:
        """Send both deletes by both ways and compare."""
        for prefix in ("/v2.1", "/v2"):
            for asked in (
                ("DELETE", f"/servers/{server}", None),
                ("DELETE", f"/os-volumes_boot/{server}", None),
                ("POST", f"/servers/{server}/action", FORCE),
            ):
                how = {"who": who, "prefix": prefix, **more}
                ours, theirs = (
                    written(self.ask(*asked, **how, app=by), server)
                    for by in (app, self.plain)
                )
                case = (asked, who, prefix, more)
                self.assertEqual(theirs, ours, case)
                # /v2 knows no microversions
                if "microversion" not in more or prefix == "/v2.1":
                    self.assertIn(ours[0], (status, 415), case)


class TestRefused(RefusedCase):
    """A server in a cell."""

    def test_by_rights_and_form(self) -> None:
        server = self.boot()
        before = self._all(server)
        for who, more, status in REFUSED:
            if "microversion" in more:
                # nothing to refuse on /v2, where it would be deleted
                answer = self.delete(server, who=who, **more)
                other = self.delete(server, who=who, app=self.plain, **more)
                self.assertEqual(status, answer.status)
                self.assertEqual(
                    written(other, server), written(answer, server)
                )
                continue
            self.compare(server, who, status, **more)
        self.assertEqual(before, self._all(server))

    def test_locked(self) -> None:
        """By its owner or by an administrator: it is 409 for its owner."""
        server = self.boot()
        for locker in (base.OWNER, base.OPERATOR):
            self.assertEqual(202, self.act(server, "lock", who=locker).status)
            before = self._all(server)
            self.compare(server, base.OWNER, 409, app=self.silent)
            told = self.delete(server).message
            kept = self.delete(server, app=self.plain).message
            self.assertTrue(told.startswith(kept), told)
            self.assertEqual(before, self._all(server))
            answer = self.act(server, "unlock", who=base.OPERATOR)
            self.assertEqual(202, answer.status)

    def _all(self, server: str) -> tuple[Any, ...]:
        return (
            surgery.row(server),
            surgery.actions(server),
            surgery.events(server),
            self.mapped(server),
        )


class TestBuildRequest(RefusedCase):
    """A server that is only a build request, of another project."""

    def test_of_another_project(self) -> None:
        self.stub_out(
            "nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances",
            lambda *_, **__: None,
        )
        server = self.boot(expected=None)
        admin = context.get_admin_context()
        for who in (base.FOREIGNER, base.READER, base.NOBODY):
            self.compare(server, who, 403)
        found = objects.BuildRequest.get_by_instance_uuid(admin, server)
        self.assertEqual(OWNER.project_id, found.project_id)
        self.assertEqual(OWNER.project_id, self.mapped(server))
        self.assertEqual([server], self.listed())
