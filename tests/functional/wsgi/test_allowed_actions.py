# SPDX-License-Identifier: Apache-2.0
"""What can be done to a server now: asked of the API and of the command."""

from __future__ import annotations

import contextlib
import io
import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

from nova.compute import api

from state_policy.cmd import app
from state_policy.drivers.nova import native
from state_policy.engine import possible
from state_policy.engine.operations import OPERATIONS
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.keystone import Person
from tests.functional.nova_reading import requests

#: Callers, and the command's arguments that stand for them.
CALLERS: tuple[tuple[Person, tuple[str, ...]], ...] = (
    (base.OWNER, ()),
    (base.READER, ("--role", "reader")),
    (
        base.OPERATOR,
        (
            "--not-owner",
            *("--role", "admin", "--role", "manager"),
            *("--role", "member", "--role", "reader"),
        ),
    ),
)

#: Actions that take no argument and end where they began, or nearly.
TRIED = ("pause", "suspend", "start", "stop", "unpause", "resume", "lock")


class TestAllowedActions(base.NovaTestCase):
    """Two doors to one answer, and the answer is true."""

    RULES = """
"server:shelve": "!"
"server:suspend": "server.vm_state:paused"
"server:reboot_hard": "not server.host:compute"
"""

    def command(self, *words: str, code: int = 0) -> str:
        """Run ``state-policy explain``; return what it wrote."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch("state_policy.drivers.nova.process.start"),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            rules = ("--rules", str(self.policy_file))
            found = app.main(["explain", *rules, *words])
        self.assertEqual(code, found, err.getvalue())
        return out.getvalue() if code == 0 else err.getvalue()

    def listed_by_api(self, server: str, who: Person) -> Any:
        answer = self.ask("GET", f"/servers/{server}/allowed-actions", who=who)
        self.assertEqual(200, answer.status, answer)
        return answer.json["allowed_actions"]

    def servers(self) -> dict[str, str]:
        found = {kind: self.boot() for kind in ("active", "stopped", "locked")}
        self.act(found["stopped"], "os-stop")
        self._wait_for_state_change({"id": found["stopped"]}, "SHUTOFF")
        self.act(found["locked"], "lock", who=base.OPERATOR)
        self.force_down()
        found["in cell0"] = self.boot(expected="ERROR")
        self.force_down(down=False)
        self.stub_out(
            "nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances",
            lambda *_, **__: None,
        )
        found["a build request"] = self.boot(expected=None)
        return found

    def test_command_and_api_agree(self) -> None:
        servers = self.servers()
        for kind, server in servers.items():
            for who, words in CALLERS:
                expected = self.listed_by_api(server, who)
                found = json.loads(
                    self.command("--server", server, *words, "-f", "json")
                )
                case = (kind, who.user_id)
                self.assertEqual(server, found["server"], case)
                self.assertEqual(expected, found["allowed_actions"], case)
        self.one_operation(servers["active"])
        self.shares(servers["active"])
        self.form(servers["active"])
        self.not_to_be_seen(servers["active"])
        self.true(servers["stopped"])
        self.true(servers["in cell0"])
        self.locked(servers["locked"])
        self.ignored(servers["active"])
        self.build_request(servers["a build request"])

    def one_operation(self, server: str) -> None:
        """Explained like any other, with the facts that Nova has."""
        words = ("suspend", "--server", server)
        found = json.loads(self.command(*words, "-f", "json"))
        self.assertEqual(("deny", 409), (found["verdict"], found["code"]))
        self.assertEqual("active", found["facts"]["server.vm_state"])
        self.assertEqual("wrong_state", found["allowed_action"]["code"])
        self.assertIn(server, found["allowed_action"]["message"])
        # To an operator a host may be named; to users it is not.
        text = self.command("reboot_hard", "--server", server)
        self.assertIn("server.host: compute", text)
        theirs = json.dumps(self.listed_by_api(server, base.OWNER))
        self.assertNotIn("compute'", theirs)
        found = json.loads(
            self.command("show", "--server", server, "-f", "json")
        )
        self.assertIsNone(found["allowed_action"])
        lines = self.command("--server", server).splitlines()
        self.assertIn("delete: allowed", lines)
        self.assertEqual(
            len(self.listed_by_api(server, base.OWNER)), len(lines)
        )

    def shares(self, server: str) -> None:
        """Nova's controller of shares looks at the state by itself."""
        path, body = (
            f"/servers/{server}/shares",
            {"share": {"share_id": server}},
        )
        for name, method, more in (
            ("attach_share", "POST", {"body": body}),
            ("detach_share", "DELETE", {}),
        ):
            said = {
                item["operation"]: item
                for item in self.listed_by_api(server, base.OWNER)
            }[name]
            self.assertEqual("state", said["code"])
            suffix = "" if method == "POST" else f"/{server}"
            answer = self.ask(
                method, path + suffix, microversion="2.97", **more
            )
            self.assertEqual(409, answer.status, answer)
            self.assertIn("In this state for ", answer.message)
            (fault,) = answer.json.values()
            self.assertEqual("wrong_state", fault["state_policy"]["code"])

    def form(self, server: str) -> None:
        """The frame of the answer is Nova's, the version's errors too."""
        ours = f"/servers/{server}/allowed-actions"
        for prefix, version, code in (
            ("/v2.1", None, 200),
            ("/v2.1", "2.1", 200),
            ("/v2.1", "2.90", 200),
            ("/v2.1", "latest", 200),
            ("/v2.1", "2.999", 406),
            ("/v2.1", "x", 400),
            ("/v2", "2.90", 200),
        ):
            one, other = (
                self.ask("GET", path, prefix=prefix, microversion=version)
                for path in (ours, f"/servers/{server}")
            )
            case = (prefix, version)
            self.assertEqual((code, code), (one.status, other.status), case)
            theirs = [name for name, _ in other.headers]
            self.assertEqual(theirs, [name for name, _ in one.headers], case)
            for name in ("Vary", "OpenStack-API-Version", "Content-Type"):
                self.assertEqual(other.header(name), one.header(name), case)
            if code != 200:
                self.assertEqual(other.message, one.message, case)

    def not_to_be_seen(self, server: str) -> None:
        said = self.command("--server", server, "--not-owner", code=1)
        self.assertIn("may not see", said)
        said = self.command("--server", str(uuid.uuid4()), code=1)
        self.assertIn("no server", said)

    def tried(
        self, server: str, who: Person, names: Iterable[str] | None = None
    ) -> Iterator[tuple[str, Any, base.Answer]]:
        """Yield operations, what is said of each and what Nova answers."""
        said = {
            item["operation"]: item for item in self.listed_by_api(server, who)
        }
        for name in names or said:
            operation = OPERATIONS[name]
            answer = self.ask(
                operation.method,
                requests.path(operation, server),
                requests.body(operation),
                who=who,
                microversion=requests.microversion(operation),
            )
            yield name, said[name], answer

    def build_request(self, server: str) -> None:
        """Nova takes three operations, and fails on some others."""
        others = OPERATIONS.keys() - {"delete", "force_delete"}
        others -= {n for n, o in OPERATIONS.items() if "read" in o.classes}
        for name, said, answer in self.tried(server, base.OPERATOR, others):
            taken = answer.status < 300
            self.assertEqual(said["allowed"], taken, (name, answer))
        self.assertEqual(202, self.act(server, "forceDelete").status)

    def locked(self, server: str) -> None:
        """Nova's lock binds what is said to be bound by it."""
        bound = set()
        for name, said, answer in self.tried(server, base.OWNER):
            # Some take an image and leave the server busy for a moment.
            self.wait_task(server, None)
            if said.get("code") in (
                "rights",
                "policy",
                "wrong_state",
                "state",
            ):
                continue
            if answer.status in (400, 404):
                continue  # a part of the server that is not there
            # On some of its old operations Nova fails for it: a 500.
            body = answer.body.lower()
            refused = answer.status >= 400 and b"locked" in body
            self.assertEqual(
                said.get("code") == "locked", refused, (name, said, answer)
            )
            bound |= {name} if refused else set()
        self.assertTrue(bound >= {"delete", "rebuild", "stop"}, bound)
        self.assertTrue(bound <= possible.UNDER_LOCK, bound)

    def ignored(self, server: str) -> None:
        """Nova takes deletes that it does not carry out: no way out."""
        surgery.set_row(server, disable_terminate=True)
        self.assertEqual("policy", self.delete_taken(server))
        surgery.set_row(server, disable_terminate=False)
        hold = self.hold("destroy")
        self.assertEqual(204, self.delete(server).status)
        hold.wait_reached()
        self.assertEqual("deleting", self.delete_taken(server))
        self.force_down()
        said = self.said(server, "delete")
        self.assertEqual({"operation": "delete", "allowed": True}, said)
        # Which is true: Nova deletes it by itself.
        self.assertEqual(204, self.delete(server).status)
        self.assertTrue(surgery.row(server)["deleted"])
        self.force_down(down=False)
        hold.release()

    def delete_taken(self, server: str) -> Any:
        """Have Nova take a delete and do nothing; return what is said."""
        said = self.said(server, "delete")
        offered = self.act(server, "shelve").json["forbidden"]
        self.assertNotIn("delete", offered["state_policy"]["possible"])
        before = surgery.row(server), surgery.actions(server)
        self.assertEqual(204, self.delete(server).status)
        after = surgery.row(server), surgery.actions(server)
        same = [{**row, "updated_at": None} for row, _ in (before, after)]
        self.assertEqual(*same)
        self.assertEqual(before[1], after[1])
        self.assertFalse(said["allowed"])
        return said["code"]

    def said(self, server: str, name: str) -> Any:
        listing = self.listed_by_api(server, base.OWNER)
        (found,) = [item for item in listing if item["operation"] == name]
        return found

    def true(self, server: str) -> None:
        """What is said to be allowed Nova takes, and nothing else."""
        counts = {True: 0, False: 0}
        for name in TRIED:
            ((_, said, answer),) = self.tried(server, base.OWNER, (name,))
            taken = answer.status < 300
            self.assertEqual(said["allowed"], taken, (name, said, answer))
            counts[taken] += 1
            if taken:
                self.wait_task(server, None)
        self.assertGreater(min(counts.values()), 0, counts)


def test_the_lock_is_where_nova_has_it() -> None:
    found = set()
    for name in OPERATIONS:
        methods = native.METHODS.get(name, (name,))
        if name.startswith("reboot_"):
            methods = ("reboot",)
        for method in methods:
            layer = getattr(api.API, method, None)
            while layer is not None:
                made_by = layer.__code__.co_qualname
                if made_by.startswith("check_instance_lock."):
                    found.add(name)
                layer = getattr(layer, "__wrapped__", None)
    assert found == possible.UNDER_LOCK
