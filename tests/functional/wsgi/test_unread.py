# SPDX-License-Identifier: Apache-2.0
"""What could not be read is no "no": the driver gives up before Nova does."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar
from unittest import mock

import nova.conf
from nova import thread_pool_factory
from oslo_db import exception as db_exception

from state_policy.drivers.nova import locate
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.keystone import Person
from tests.functional.quarantine.support import RequestCase

RULES = (
    '"server:pause": "!"\n'
    '"server:suspend": "not server.vm_state:active"\n'
    '"server:lock": "server.vm_state:active"\n'
)


@contextmanager
def lookups_fail(
    error: type[Exception] = db_exception.DBDeadlock, times: int | None = None
) -> Iterator[mock.Mock]:
    """Let the driver's looks into the API database fail; Nova's do not.

    :param times: how many; None: all
    """
    real, seen = locate._row, []

    def row(server_id: str) -> Any:
        seen.append(server_id)
        if times is None or len(seen) <= times:
            raise error("mysql://nova:secret@db")
        return real(server_id)

    with mock.patch.object(locate, "_row", side_effect=row) as patched:
        yield patched


class FullPoolCase(base.NovaTestCase):
    """All threads of Nova's in which cells are read are taken."""

    RULES = RULES
    #: Seconds. Nova itself waits for a thread, up to a minute.
    TIMEOUT = 0.5

    @contextmanager
    def full_pool(self, seconds: float = 30) -> Iterator[threading.Event]:
        """Hold every thread for so long, or to the end of the block."""
        go = threading.Event()
        pool = thread_pool_factory
        for _ in range(nova.conf.CONF.cell_worker_thread_pool_size):
            pool.spawn_on(pool.ExecutorType.SCATTER_GATHER, go.wait, seconds)
        try:
            yield go
        finally:
            go.set()

    def check_never(self, server: str) -> None:
        """A rule that asks for nothing is decided: by the mapping."""
        with self.full_pool():
            began = time.monotonic()
            answer = self.act(server, "pause")
            # One wait, not one for each thing that could be told beside.
            assert time.monotonic() - began < 5 * self.TIMEOUT
        assert answer.status == 403
        assert "the policy of this cloud forbids it" in answer.message
        told = answer.json["forbidden"]["state_policy"]
        assert (told["code"], told["facts"]) == ("policy", {})
        assert surgery.row(server)["vm_state"] == "active"

    def check_strangers(self, server: str) -> None:
        """Who does not own it hears of it what he hears of none."""
        with self.full_pool(2):
            found = self.act(server, "pause", who=base.FOREIGNER)
        absent = str(uuid.uuid4())
        expected = self.act(absent, "pause", who=base.FOREIGNER)
        assert (found.status, found.body) == (
            expected.status,
            expected.body.replace(absent.encode(), server.encode()),
        )


class TestFullPoolRefused(FullPoolCase):
    OPTIONS: ClassVar[dict[str, Any]] = {
        "cell_timeout": FullPoolCase.TIMEOUT,
        "on_unknown": "refuse",
        "retry_after": 17,
    }

    def test_refused(self) -> None:
        server = self.boot()
        self.check_never(server)
        self.check_strangers(server)
        with self.full_pool():
            for action in ("suspend", "lock"):
                answer = self.act(server, action)
                assert answer.status == 503, action
                assert answer.header("Retry-After") == "17"
                assert answer.message == (
                    f"Cannot '{action}' instance {server} while its state "
                    "cannot be read. Retry in 17 seconds."
                )
        row = surgery.row(server)
        assert (row["vm_state"], row["locked"]) == ("active", False)
        # As soon as a thread is free it is as ever.
        assert self.act(server, "suspend").status == 409
        assert self.act(server, "lock").status == 202


class TestFullPoolAllowed(FullPoolCase):
    OPTIONS: ClassVar[dict[str, Any]] = {
        "cell_timeout": FullPoolCase.TIMEOUT,
        "on_unknown": "allow",
    }

    def test_allowed(self) -> None:
        server = self.boot()
        self.check_never(server)
        self.check_strangers(server)
        with self.full_pool(2):
            assert self.act(server, "suspend").status == 202
        self.wait_for(
            lambda: surgery.row(server)["vm_state"] == "suspended", "suspended"
        )


class LookupCase(base.NovaTestCase):
    """The driver cannot find out where a server is."""

    RULES = RULES

    def check_once(self, server: str) -> None:
        """What passes by itself is tried once more."""
        for error in (
            db_exception.DBDeadlock,
            db_exception.DBConnectionError,
            db_exception.RetryRequest,
        ):
            with lookups_fail(error, times=1) as asked:
                assert self.act(server, "pause").status == 403, error
            assert asked.call_count == 2


class TestLookupRefused(LookupCase):
    OPTIONS: ClassVar[dict[str, Any]] = {
        "on_unknown": "refuse",
        "max_body": 1024,
    }

    def test_refused(self) -> None:
        server = self.boot()
        self.check_once(server)
        for error, tries in (
            (db_exception.DBDeadlock, 2),
            (db_exception.DBError, 1),
        ):
            with lookups_fail(error) as asked:
                answer = self.act(server, "pause")
            assert asked.call_count == tries
            assert answer.status == 503
            assert answer.header("Retry-After") == "30"
            assert "secret" not in str(answer)
        self.check_all_alike(server)
        with lookups_fail():
            # No rule is about this one; the version is for Nova to refuse.
            assert self.act(server, "unlock").status == 202
            bad = self.act(server, "pause", microversion="2.999")
            assert bad.status == 406
            assert self.ask("GET", f"/servers/{server}").status == 200
            path = f"/servers/{server}/allowed-actions"
            assert self.ask("GET", path).status == 503
        assert surgery.row(server)["vm_state"] == "active"
        self.check_long(server)

    def check_all_alike(self, server: str) -> None:
        """Nobody hears whether there is such a server."""
        answers = set()
        for one in (server, str(uuid.uuid4())):
            for who in (base.OWNER, base.FOREIGNER, base.OPERATOR):
                with lookups_fail():
                    answer = self.act(one, "suspend", who=who)
                told = answer.json["serviceUnavailable"]
                assert told["state_policy"].pop("decision")
                text = json.dumps(told).replace(one, "ID")
                answers.add((answer.status, text))
        assert len(answers) == 1, answers

    def check_long(self, server: str) -> None:
        """An action whose name cannot be read could be any."""
        body = b'{"pause": null}' + b" " * 1024
        answer = self.act_raw(server, body)
        assert answer.status == 413
        assert answer.json["overLimit"]["code"] == 413
        assert answer.header("Retry-After") is None
        assert surgery.row(server)["vm_state"] == "active"
        assert self.act_raw(server, body[:1024]).status == 403

    def act_raw(self, server: str, body: bytes) -> base.Answer:
        return self.ask("POST", f"/servers/{server}/action", body)


class TestLookupAllowed(LookupCase):
    OPTIONS: ClassVar[dict[str, Any]] = {
        "on_unknown": "allow",
        "max_body": 1024,
    }

    def test_allowed(self) -> None:
        server = self.boot()
        self.check_once(server)
        with lookups_fail():
            assert self.act(server, "suspend").status == 202
        self.wait_task(server, None)
        assert surgery.row(server)["vm_state"] == "suspended"
        body = b'{"resume": null}' + b" " * 1024
        path = f"/servers/{server}/action"
        assert self.ask("POST", path, body).status == 202


class GuardCase(RequestCase):
    """One server is concealed, and nobody can look which."""

    def pair(self) -> tuple[str, str]:
        """Return a server that is concealed and one that is not."""
        hidden, plain = self.boot(), self.boot()
        assert self.delete(hidden).status == 204
        self.assert_concealed(hidden)
        return hidden, plain

    def doors(self, server: str) -> Iterator[tuple[str, Callable[..., Any]]]:
        for method, path, body in (
            ("GET", "", None),
            ("GET", "/ips", None),
            ("GET", "/allowed-actions", None),
            ("GET", "/os-no-such-thing", None),
            ("DELETE", "", None),
            ("POST", "/action", {"unlock": None}),
            ("POST", "/action", {"pause": None}),
            ("PUT", "", {"server": {"name": "n"}}),
        ):

            def send(who: Person, m=method, p=path, b=body) -> base.Answer:
                return self.ask(m, f"/servers/{server}{p}", b, who=who)

            yield f"{method} {path} {body}", send


class TestGuard(GuardCase):
    """Whatever ``on_unknown`` is, nobody sees what he may not see."""

    OPTIONS: ClassVar[dict[str, Any]] = {"on_unknown": "allow"}

    def test_nobody_is_shown_it(self) -> None:
        hidden, plain = self.pair()
        before = surgery.row(hidden), surgery.row(plain)
        answers = set()
        for one in (hidden, plain, str(uuid.uuid4())):
            for name, send in self.doors(one):
                for who in (base.OWNER, base.READER, base.FOREIGNER):
                    with lookups_fail():
                        answer = send(who)
                    assert answer.status == 503, (name, who)
                    assert answer.header("Retry-After") == "30"
                    answers.add(answer.body.replace(one.encode(), b"ID"))
        assert len(answers) == 1, answers
        assert before == (surgery.row(hidden), surgery.row(plain))
        self.check_who_may(hidden)
        self.check_lists(hidden, plain)
        # Once it can be looked again:
        path = f"/servers/{hidden}"
        assert self.ask("GET", path).status == 404
        with lookups_fail(times=1):
            assert self.ask("GET", path).status == 404

    def check_who_may(self, hidden: str) -> None:
        """Who sees every server needs no look."""
        path = f"/servers/{hidden}"
        with lookups_fail():
            for who, status in ((base.OPERATOR, 200), (base.INSPECTOR, 404)):
                assert self.ask("GET", path, who=who).status == status

    def check_lists(self, hidden: str, plain: str) -> None:
        """Lists are Nova's own, from rows that are hidden in them."""
        with lookups_fail() as asked:
            for path in ("/servers", "/servers/detail"):
                found = self.ask("GET", path).json["servers"]
                assert [s["id"] for s in found] == [plain], path
        assert not asked.called


class TestGuardInAudit(GuardCase):
    """Audit keeps nobody waiting; a concealed server stays concealed."""

    def test_looked_at_afterwards(self) -> None:
        hidden, plain = self.pair()
        # Another filter on the same databases, as after a restart.
        self.flags(group="state_policy", mode="audit")
        app = self.load((self.directory / "api-paste.ini").read_text())
        path = f"/servers/{plain}"
        expected = self.ask("GET", path, app=app)
        assert expected.status == 200
        with lookups_fail(times=2):
            found = self.ask("GET", path, app=app)
        assert (found.status, found.body) == (200, expected.body)
        path = f"/servers/{hidden}"
        expected = self.ask("GET", path, app=app)
        assert expected.status == 404
        with lookups_fail(times=2):
            found = self.ask("GET", path, app=app)
        assert (found.status, found.body) == (404, expected.body)
        with lookups_fail():
            answer = self.ask("GET", f"/servers/{plain}", app=app)
        assert answer.status == 200
