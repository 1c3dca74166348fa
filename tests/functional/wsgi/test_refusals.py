# SPDX-License-Identifier: Apache-2.0
"""Refusals through both pipelines of real Nova, and the ways around them."""

from __future__ import annotations

import json
from typing import Any

import webob
from nova import context
from oslo_utils.fixture import uuidsentinel

from state_policy import deploy
from tests.functional import base
from tests.functional.harness import surgery

ABSENT = uuidsentinel.absent
STOP = {"os-stop": None}


class TestRefusal(base.NovaTestCase):
    """The form is Nova's, whatever the way a request comes."""

    RULES = """
"class:destroy": "!"
"server:pause": "server.vm_state:stopped"
"""

    def _refused(self, answer: base.Answer, code: int = 403) -> None:
        self.assertEqual(code, answer.status, answer.body)
        (fault,) = answer.json.values()
        self.assertIn("state_policy", fault, answer.body)

    def _there(self, server: str) -> None:
        self.assertEqual("active", surgery.row(server)["vm_state"])
        self.assertIsNone(surgery.row(server)["task_state"])

    def test_form_is_nova_s(self) -> None:
        server = self.boot()
        for prefix, version in (("/v2.1", "2.90"), ("/v2", None)):
            more: Any = {"prefix": prefix, "microversion": version}
            ours = self.act(server, "pause", **more)
            theirs = self.act(server, "confirmResize", **more)
            self.assertEqual((409, 409), (ours.status, theirs.status))
            self.assertEqual(list(theirs.json), list(ours.json))
            self.assertEqual(
                [name for name, _ in theirs.headers],
                [name for name, _ in ours.headers],
            )
            same = {"content-length", "x-compute-request-id"}
            same |= {"x-openstack-request-id", "date"}
            for (name, one), (_, other) in zip(
                theirs.headers, ours.headers, strict=True
            ):
                if name.lower() not in same:
                    self.assertEqual(one, other, name)

    def test_every_door(self) -> None:
        server = self.boot()
        plain = f"/servers/{server}"
        for path in (
            plain,
            f"/{base.OWNER_PROJECT}{plain}",
            f"/os-volumes_boot/{server}",
            f"{plain}%0A",
        ):
            for prefix in ("/v2.1", "/v2"):
                answer = self.ask("DELETE", path, prefix=prefix)
                self._refused(answer)
        for body in (
            b'{"reb\\u0075ild": {}}',
            b' {"rebuild": {}, "rebuild": {}}',
        ):
            self._refused(self.ask("POST", f"{plain}/action", body))
        self._refused(self.act(server, "forceDelete"))
        for method in ("GET", "HEAD", "PATCH"):
            path = f"{plain}?_method=DELETE"
            answer = self.ask(method, path, who=base.OWNER)
            self.assertEqual(403, answer.status, (method, answer))
        self._there(server)

    def test_foreign_looks_absent(self) -> None:
        server = self.boot()
        for method, suffix, body in (
            ("DELETE", "", None),
            ("POST", "/action", {"rebuild": {}}),
            ("POST", "/action", {"pause": None}),
            ("POST", "/action", {"noSuchAction": None}),
            ("GET", "/allowed-actions", None),
        ):
            foreign, absent = (
                self.ask(
                    method, f"/servers/{one}{suffix}", body, who=base.FOREIGNER
                )
                for one in (server, ABSENT)
            )
            self.assertEqual(foreign.status, absent.status)
            self.assertEqual(
                foreign.body.replace(server.encode(), b"ID"),
                absent.body.replace(ABSENT.encode(), b"ID"),
            )
        self._there(server)

    def test_what_nova_refuses_first_is_nova_s(self) -> None:
        server = self.boot()
        path = f"/servers/{server}"
        for expected, answer in (
            (400, self.delete(server, microversion="x")),
            (406, self.delete(server, microversion="2.999")),
            (400, self.ask("DELETE", f"/abc{path}")),
            (403, self.delete(server, who=base.READER)),
            (
                415,
                self.ask("DELETE", path, headers={"Content-Type": "text/x"}),
            ),
            (404, self.ask("DELETE", f"{path}.json")),
        ):
            self.assertEqual(expected, answer.status)
            self.assertNotIn(b"state_policy", answer.body)
        self._there(server)


class TestWithoutFilter(base.NovaTestCase):
    """The ways around are real: Nova goes them."""

    FILTERED = False

    def test_a_get_that_deletes(self) -> None:
        server = self.boot()
        answer = self.ask("GET", f"/servers/{server}?_method=DELETE")
        self.assertEqual(204, answer.status)
        self._wait_until_deleted({"id": server})

    def test_a_newline_at_the_end(self) -> None:
        server = self.boot()
        answer = self.ask("DELETE", f"/servers/{server}%0A")
        self.assertEqual(204, answer.status)


class TestExplanation(base.NovaTestCase):
    """What Nova refuses is explained; what is possible can be asked."""

    RULES = """
"server:shelve": "!"
"server:create_image": "server.launched:true"
"""

    def test_stopped(self) -> None:
        server = self.boot()
        self.act(server, "os-stop")
        self._wait_for_state_change({"id": server}, "SHUTOFF")
        answer = self.act(server, "pause")
        self.assertEqual(409, answer.status)
        self.assertTrue(
            answer.message.startswith(
                f"Cannot 'pause' instance {server} while it is in vm_state "
                "stopped. In this state for "
            ),
            answer.message,
        )
        self.assertIn("by action 'stop'", answer.message)
        self.assertIn("Possible now: start, ", answer.message)
        self.assertIn("DELETE", answer.message)
        self.assertLess(len(answer.message), 300)
        self.assertIsNone(answer.header("Retry-After"))
        self._allowed(server)

    def _allowed(self, server: str) -> None:
        answer = self.ask("GET", f"/servers/{server}/allowed-actions")
        self.assertEqual(200, answer.status)
        found = {i["operation"]: i for i in answer.json["allowed_actions"]}
        self.assertTrue(found["start"]["allowed"])
        self.assertTrue(found["delete"]["allowed"])
        self.assertEqual("state", found["pause"]["code"])
        self.assertEqual("policy", found["shelve"]["code"])
        self.assertEqual("rights", found["evacuate"]["code"])

    def test_never_launched_and_host_down(self) -> None:
        server = self.boot()
        launched = surgery.row(server)["launched_at"]
        surgery.set_row(server, launched_at=None)
        answer = self.act(server, "pause")
        self.assertEqual(409, answer.status, answer)
        self._explained(answer, "never_launched", None)
        surgery.set_row(server, launched_at=launched)
        self.force_down()
        # Nova looks at the service itself, and names no host to users.
        for prefix in ("/v2.1", "/v2"):
            answer = self.act(
                server, {"resize": {"flavorRef": "2"}}, prefix=prefix
            )
            self.assertEqual(409, answer.status, answer)
            self.assertTrue(
                answer.message.startswith(
                    "Service is unavailable at this time. Possible now: "
                    "DELETE. "
                ),
                answer.message,
            )
            self._explained(answer, "host_down", 30)

    def _explained(
        self, answer: base.Answer, code: str, seconds: int | None
    ) -> None:
        (fault,) = answer.json.values()
        told = fault["state_policy"]
        self.assertEqual((code, seconds), (told["code"], told["retry_after"]))
        header = None if seconds is None else str(seconds)
        self.assertEqual(header, answer.header("Retry-After"))

    def test_busy_and_locked(self) -> None:
        server, build = self.boot_held()
        # A rule of ours about what the build will change.
        answer = self.act(server, {"createImage": {"name": "i"}})
        self.assertEqual(409, answer.status, answer.body)
        self._explained(answer, "never_launched", 30)
        build.release()
        self._wait_for_state_change({"id": server}, "ACTIVE")
        hold = self.hold("snapshot")
        self.act(server, {"createImage": {"name": "i"}})
        hold.wait_reached()
        for prefix in ("/v2.1", "/v2"):
            answer = self.act(
                server,
                {"rebuild": {"imageRef": surgery.row(server)["image_ref"]}},
                prefix=prefix,
                microversion=None,
            )
            self.assertEqual(409, answer.status, answer.body)
            self.assertEqual("30", answer.header("Retry-After"))
            self.assertIn("by action 'createImage'", answer.message)
        # Nova refuses this without the snapshot, too.
        answer = self.act(server, "unpause")
        self.assertEqual(409, answer.status, answer.body)
        self._explained(answer, "wrong_state", None)
        hold.release()
        self.wait_task(server, None)
        self.act(server, "lock")
        answer = self.act(server, "os-stop")
        self.assertEqual(409, answer.status)
        self.assertIn("Possible now: unlock, create image.", answer.message)


class TestCost(base.NovaTestCase):
    """SELECTs that a rule set adds to a request, by database."""

    RULES = """
"server:start": "role:member"
"server:stop": "server.vm_state:active,stopped and not rule:busy"
"server:pause": "server.vm_state:active and not server.hypervisor:x"
"server:unpause": "role:admin or server.vm_state:paused"
"""
    QUARANTINE = base.QUARANTINED

    def _cost(self, server: str, action: str, guarded: bool) -> dict[str, int]:
        """Return what the filter alone reads for a request that it allows."""
        reached = []

        def nova(environ: Any, start_response: Any) -> list[bytes]:
            reached.append(environ)
            start_response("202 Accepted", [])
            return []

        options = {} if guarded else {"quarantine_enabled": "false"}
        found = deploy.filter_factory({}, **options)(nova)
        request = webob.Request.blank(
            f"/servers/{server}/action",
            method="POST",
            body=json.dumps({action: None}).encode(),
            content_type="application/json",
        )
        request.environ["nova.context"] = context.RequestContext(
            base.OWNER.user_id, base.OWNER.project_id, roles=["member"]
        )
        # All threads are counted, since cells are read in Nova's pool.
        with self.statements(every_thread=True) as statements:
            self.assertEqual(202, request.get_response(found).status_int)
        self.assertEqual(1, len(reached))
        self.assertEqual([], statements.writes())
        return statements.selects()

    def test_selects(self) -> None:
        server = self.boot()
        for action, expected in (
            ("suspend", {}),
            ("os-start", {}),
            ("os-stop", {"api": 1, "cell1": 1}),
            ("pause", {"api": 1, "cell1": 2}),
        ):
            self.assertEqual(
                expected, self._cost(server, action, guarded=False), action
            )
            self.assertEqual(
                {"api": 1, **expected},
                self._cost(server, action, guarded=True),
                action,
            )
