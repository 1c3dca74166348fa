# SPDX-License-Identifier: Apache-2.0
"""A DELETE that conceals, through the real paste file."""

from __future__ import annotations

import concurrent.futures

from state_policy.quarantine.record import Kind
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, OWNER, RequestCase

#: Everything below a server that can be read; Nova's tests know them too.
BELOW = (
    "",
    "/diagnostics",
    "/ips",
    "/ips/private",
    "/metadata",
    "/metadata/key",
    "/migrations",
    "/os-instance-actions",
    "/os-interface",
    "/os-security-groups",
    "/os-server-password",
    "/os-volume_attachments",
    "/tags",
    "/topology",
)


class TestOwnerAndOperator(RequestCase):
    """What each of them sees, from the first DELETE to the last."""

    def test_story(self) -> None:
        server, hold = self.boot_held()
        answer = self.delete(server)
        self.assertEqual((204, b""), (answer.status, answer.body))
        self.assert_concealed(server)
        self._owner_sees_nothing(server)
        self.assertEqual(404, self.delete(server).status)
        self.assertEqual(
            404,
            self.ask("GET", f"/servers/{server}", who=base.FOREIGNER).status,
        )
        self._operator_sees(server, "building")
        hold.release()
        self.wait_for(
            lambda: not self.mover.look(server).running, "nothing runs"
        )
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        self._owner_sees_nothing(server)
        self._operator_sees(server, "active")
        self.assertEqual([server], self.listed(base.INSPECTOR))
        # the operator's DELETE is not quarantined again
        answer = self.delete(server, who=base.OPERATOR)
        self.assertEqual(204, answer.status)
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.assertEqual(
            [Kind.CONCEAL, Kind.SETTLE],
            [r.kind for r in self.records(server)],
        )
        self.wait_for(lambda: not self.guests(), "no guest")
        self.assertIsNone(self.charged(server))
        self.assertEqual([], self.swept())

    def _owner_sees_nothing(self, server: str) -> None:
        self.assertEqual([], self.listed())
        self.assertEqual({"instances": 0, "cores": 0, "ram": 0}, self.used())
        for path in BELOW:
            for form in (server, server.upper()):
                answer = self.ask("GET", f"/servers/{form}{path}")
                self.assertEqual(404, answer.status, path)
                self.assertNotIn(KEEPER.project_id.encode(), answer.body)
        changes = self.listed(query="?changes-since=2020-01-01T00:00:00Z")
        self.assertEqual([], changes)
        for action in ("os-start", "reboot", "unlock", "forceDelete"):
            body = {action: {"type": "HARD"} if action == "reboot" else None}
            self.assertEqual(404, self.act(server, body).status, action)

    def _operator_sees(self, server: str, vm_state: str) -> None:
        answer = self.ask("GET", f"/servers/{server}", who=base.OPERATOR)
        self.assertEqual(200, answer.status)
        self.assertEqual(
            vm_state, answer.json["server"]["OS-EXT-STS:vm_state"]
        )


class TestForms(RequestCase):
    """Success codes, the other pipeline, and requests Nova refuses."""

    RULES = (
        '"server:delete:quarantine": "@"\n'
        '"server:force_delete:quarantine": "@"\n'
    )

    def test_force_delete(self) -> None:
        server = self.boot()
        answer = self.act(server, "forceDelete")
        self.assertEqual((202, b""), (answer.status, answer.body))
        self.assert_concealed(server)
        self.assertEqual("force_delete", self.records(server)[0].operation)

    def test_v2(self) -> None:
        server = self.boot()
        answer = self.delete(server, prefix="/v2", microversion=None)
        self.assertEqual(204, answer.status)
        self.assertIsNone(answer.header("OpenStack-API-Version"))
        self.assert_concealed(server)

    def test_refused_by_nova(self) -> None:
        """Nova's own answers, and nothing is done."""
        server = self.boot()
        for status, more in (
            (406, {"microversion": "9.9"}),
            (406, {"microversion": "2.999"}),
            (400, {"microversion": "new"}),
            (404, {"who": base.FOREIGNER}),
            (403, {"who": base.READER}),
            (403, {"who": base.NOBODY}),
        ):
            self.assertEqual(status, self.delete(server, **more).status)
        self.assertEqual(202, self.act(server, "lock").status)
        self.assertEqual(409, self.delete(server).status)
        self.assertFalse(surgery.row(server)["hidden"])
        self.assertEqual([], self.records(server))
        self.assertEqual(OWNER.project_id, self.mapped(server))
        # an administrator's lock keeps the owner out as well
        self.assertEqual(202, self.act(server, "unlock").status)
        self.assertEqual(
            202, self.act(server, "lock", who=base.OPERATOR).status
        )
        self.assertEqual(409, self.delete(server).status)
        self.assertEqual([], self.records(server))


class TestLockedMeanwhile(RequestCase):
    """A lock that came after the look binds like one before it."""

    def test_it_is_left_alone(self) -> None:
        server = self.boot()
        seen = self.mover.look(server)
        self.assertEqual(202, self.act(server, "lock").status)
        self.assertFalse(self.mover.conceal_row(seen, KEEPER, "{}", None))
        row = surgery.row(server)
        self.assertEqual((False, "owner"), (row["hidden"], row["locked_by"]))
        self.assertEqual([], self.records(server))


class TestParallel(RequestCase):
    """Twenty DELETEs at once: one record, answers that clients know."""

    def test_one_record(self) -> None:
        server = self.boot()
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(
                pool.map(lambda _: self.delete(server).status, range(20))
            )
        self.assertEqual(set(), set(answers) - {204, 404})
        self.assertIn(204, answers)
        self.assertEqual(1, len(self.records(server)))
        self.assert_concealed(server)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
