# SPDX-License-Identifier: Apache-2.0
"""A location or a right that could not be read is neither yes nor no."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.drivers.memory.answers import REFUSED_VERSION
from state_policy.engine.decision import Verdict
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.effects import Outcome
from state_policy.engine.ports.reading import Caller, Location, UnreadError
from tests.unit.wsgi.requests import (
    ADMIN,
    FOREIGNER,
    INSPECTOR,
    OWNER,
    SERVER,
    Answer,
    Cloud,
    action,
    ask,
    environ,
)
from tests.unit.wsgi.rules import FACTS, driver, make
from tests.unit.wsgi.test_filter import Mover, moved
from tests.unit.wsgi.test_guard import PLAIN, EventCloud, event
from tests.unit.wsgi.test_guard import Mover as Delivering

NEVER = '"class:any": "!"'
NO_STOP = '"server:stop": "server.vm_state:stopped"'
ALLOWED = f"/servers/{SERVER}/allowed-actions"
LONG = b'{"os-stop": null}' + b" " * 5000


class Dim(Driver):
    """Cannot find servers, or tell rights.

    :ivar unseen: ids that cannot be looked up
    :ivar looks: how many looks fail; None: all
    :ivar unjudged: policies whose answer cannot be had
    """

    unseen: frozenset[str] = frozenset()
    looks: int | None = None
    unjudged: frozenset[str] = frozenset()

    def locate(self, server_id: str) -> Location | None:
        """Fail for some."""
        if server_id.lower() in self.unseen and self.looks != 0:
            if self.looks is not None:
                self.looks -= 1
            raise UnreadError("secret")
        return super().locate(server_id)

    def may(
        self, caller: Caller, location: Location, gate: str
    ) -> bool | None:
        """Return None for some."""
        if gate in self.unjudged:
            return None
        return super().may(caller, location, gate)


def dim(*servers: MemoryServer, **more: Any) -> Dim:
    """Return a driver that cannot tell something."""
    mover = more.pop("mover", None)
    known = servers or (MemoryServer(SERVER, facts=dict(FACTS)),)
    found = Dim(known, mover=mover)
    for name, value in more.items():
        setattr(found, name, value)
    return found


UNSEEN: dict[str, Any] = {"unseen": frozenset({SERVER})}
UNJUDGED: dict[str, Any] = {"unjudged": frozenset({OPERATIONS["stop"].gate})}


# -- decisions ----------------------------------------------------------------


@pytest.mark.parametrize("lacking", [UNSEEN, UNJUDGED])
@pytest.mark.parametrize("text", [NEVER, NO_STOP])
def test_refused(lacking: Any, text: str, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "state_policy.decisions")
    found = make(text, dim(**lacking), refuse_unknown=True)
    answer = ask(found, action("os-stop"))
    app: Any = found.app
    assert (answer.code, app.seen) == (503, [])
    assert answer.header("Retry-After") == "30"
    assert answer.fault["message"] == (
        f"Cannot 'stop' instance {SERVER} while its state cannot be read. "
        "Retry in 30 seconds."
    )
    told = answer.fault["state_policy"]
    (line,) = [json.loads(r.message) for r in caplog.records]
    assert told.pop("decision") == line["decision"]
    assert told.pop("rule") == line["rule"]
    # Nothing of the server is in it.
    assert told == {
        "code": "unreadable",
        "facts": {},
        "lifts": [],
        "possible": [],
        "retry_after": 30,
    }
    assert (line["verdict"], line["code"], line["facts"]) == ("deny", 503, {})


@pytest.mark.parametrize("lacking", [UNSEEN, UNJUDGED])
def test_passed_on(lacking: Any, caplog: Any) -> None:
    caplog.set_level(logging.INFO, "state_policy.decisions")
    found = make(NEVER, dim(**lacking))
    assert ask(found, action("os-stop")).code == 202
    (line,) = [json.loads(r.message) for r in caplog.records]
    assert (line["verdict"], line["undecided"]) == ("allow", True)


@pytest.mark.parametrize("lacking", [UNSEEN, UNJUDGED])
def test_audit_changes_no_byte(lacking: Any) -> None:
    found = make(NEVER, dim(**lacking), mode="audit", refuse_unknown=True)
    app: Any = found.app
    expected = ask(Cloud(), action("os-stop"))
    assert ask(found, action("os-stop")) == expected
    assert app.bodies == [b'{"os-stop": null}']


@pytest.mark.parametrize("lacking", [UNSEEN, UNJUDGED])
def test_warning_tells_nothing(lacking: Any) -> None:
    found = make(NO_STOP, dim(**lacking), mode="warn", refuse_unknown=True)
    answer = ask(found, action("os-stop"))
    text = answer.header("Warning")
    assert answer.code == 202
    assert text is not None and "cannot be read" in text
    assert "active" not in text
    allowing = make(NO_STOP, dim(**lacking), mode="warn")
    assert ask(allowing, action("os-stop")).header("Warning") is None


def test_nothing_is_done_for_who_is_not_known() -> None:
    gate = OPERATIONS["delete"].gate
    for refuse, code in ((True, 503), (False, 202)):
        effect = Mover(moved)
        found = make(
            '"server:delete:quarantine": "@"',
            dim(unjudged=frozenset({gate})),
            effects={Verdict.QUARANTINE: effect},
            refuse_unknown=refuse,
        )
        assert ask(found, environ("DELETE")).code == code
        assert effect.decisions == []


def test_a_refusal_offers_only_what_is_known_to_be_allowed() -> None:
    reader = dim(unjudged=frozenset({OPERATIONS["pause"].gate}))
    answer = ask(make(NO_STOP, reader), action("os-stop"))
    possible = answer.fault["state_policy"]["possible"]
    assert answer.code == 409
    assert "delete" in possible and "pause" not in possible


def test_what_rules_leave_alone_needs_no_look() -> None:
    for text in (NO_STOP, '"server:start": "role:member"'):
        found = make(text, dim(**UNSEEN), refuse_unknown=True)
        assert ask(found, action("os-start")).code == 202


def test_what_nova_refuses_first_it_refuses() -> None:
    found = make(NEVER, dim(**UNSEEN), refuse_unknown=True)
    bad = action("os-stop", HTTP_OPENSTACK_API_VERSION=REFUSED_VERSION)
    assert ask(found, bad).code == 202
    assert ask(found, environ("DELETE", f"/abc/servers/{SERVER}")).code == 202


@pytest.mark.parametrize("failing", ["locate", "read", "may"])
@pytest.mark.parametrize(
    ("mode", "code"), [("enforce", 503), ("warn", 202), ("audit", 202)]
)
def test_failures_of_ours_are_no_consent(
    failing: str, mode: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug, or an error that no contract names."""

    class Broken(Driver):
        def __getattribute__(self, name: str) -> Any:
            if name == failing:
                raise RuntimeError("s3cr3t")
            return super().__getattribute__(name)

    reader = Broken([MemoryServer(SERVER, facts=dict(FACTS))])
    found = make(NO_STOP, reader, mode=mode, refuse_unknown=True)
    assert ask(found, action("os-stop")).code == code
    assert found.recorder.counters.read()["fault"] >= 1
    assert "s3cr3t" not in caplog.text
    # A stranger hears what he hears of a server that does not exist.
    if failing == "read":
        strange = action("os-stop", caller=FOREIGNER)
        assert ask(found, strange).code == 202


def test_a_failing_effect_is_no_consent() -> None:
    class Bad(Mover):
        def apply(self, *args: Any) -> Outcome:
            raise RuntimeError

    found = make(
        '"server:delete:quarantine": "@"',
        driver(),
        effects={Verdict.QUARANTINE: Bad(None)},
        refuse_unknown=True,
    )
    assert ask(found, environ("DELETE")).code == 503


def test_a_switch_that_cannot_be_looked_at_is_none(tmp_path: Path) -> None:
    class Barred(type(tmp_path)):  # type: ignore[misc]
        def exists(self, **more: Any) -> bool:
            raise PermissionError

    found = make(NEVER, driver(), disabled_by=Barred(tmp_path))
    assert ask(found, action("os-stop")).code == 403


# -- what can be done ---------------------------------------------------------


@pytest.mark.parametrize("refuse", [True, False])
def test_nobody_is_told_what_he_may(refuse: bool) -> None:
    shown = frozenset({OPERATIONS["show"].gate})
    for lacking in (UNSEEN, {"unjudged": shown}):
        found = make(NO_STOP, dim(**lacking), refuse_unknown=refuse)
        answer = ask(found, environ("GET", ALLOWED))
        assert (answer.code, answer.header("Retry-After")) == (503, "30")
        assert answer.fault["state_policy"] == {
            "code": "unreadable",
            "retry_after": 30,
        }


@pytest.mark.parametrize(
    ("refuse", "expected"),
    [
        (True, {"allowed": False, "code": "unreadable"}),
        (False, {"allowed": True, "undecided": True}),
    ],
)
def test_a_right_that_is_not_known(refuse: bool, expected: Any) -> None:
    found = make(NO_STOP, dim(**UNJUDGED), refuse_unknown=refuse)
    listed = ask(found, environ("GET", ALLOWED)).json["allowed_actions"]
    (stop,) = [item for item in listed if item["operation"] == "stop"]
    assert expected.items() <= stop.items()


# -- the guard ----------------------------------------------------------------


def hiding(text: str = "", **more: Any) -> tuple[Any, Cloud]:
    """Return a filter that cannot tell who may see a server."""
    app = Cloud()
    reader = dim(MemoryServer(SERVER, project_id="q"), **UNSEEN)
    reader.looks = more.pop("looks", None)
    return make(text, reader, app=app, projects=("q",), **more), app


@pytest.mark.parametrize("caller", [OWNER, FOREIGNER])
@pytest.mark.parametrize(
    "request_of",
    [
        environ(),
        environ("GET", f"/servers/{SERVER}/no-such-thing"),
        environ("GET", ALLOWED),
        environ("DELETE"),
        action("os-stop"),
        environ("GET", f"/servers/{SERVER.upper()}"),
        environ("GET", f"/os-volumes_boot/{SERVER}"),
    ],
)
def test_what_might_be_concealed_is_not_shown(
    caller: Any, request_of: Any, tmp_path: Path
) -> None:
    for more in (
        {},
        {"mode": "warn"},
        {"refuse_unknown": True},
        {"disabled_by": tmp_path},
        {"text": NEVER},
    ):
        found, app = hiding(**more)
        request = {**request_of, "state_policy.caller": caller}
        answer = ask(found, request)
        assert (answer.code, app.seen) == (503, []), more
        assert answer.header("Retry-After") == "30"
        assert "cannot be read now" in answer.fault["message"]


@pytest.mark.parametrize("caller", [ADMIN, INSPECTOR])
def test_who_sees_every_server_is_not_kept(caller: Any) -> None:
    found, app = hiding()
    assert ask(found, environ(caller=caller)).code == 202
    assert len(app.seen) == 1
    # The rules do not know the server either, and follow their own option.
    for refuse, code in ((True, 503), (False, 202)):
        found, _ = hiding(NEVER, refuse_unknown=refuse)
        assert ask(found, action("os-stop", caller=caller)).code == code


def test_one_of_two_projects_does_not_see_the_other_s() -> None:
    reader = dim(MemoryServer(SERVER, project_id="q2"), **UNSEEN)
    found = make("", reader, projects=("q", "q2"))
    assert ask(found, environ(caller=INSPECTOR)).code == 503


def test_what_is_no_server_is_not_kept() -> None:
    for path in ("/servers/detail", "/servers", "/os-keypairs"):
        found, app = hiding()
        assert ask(found, environ("GET", path)).code == 202
        assert len(app.seen) == 1


def test_what_nova_refuses_unseen_is_not_kept() -> None:
    """It says nothing of the server."""
    for request in (
        environ("GET", f"/abc/servers/{SERVER}"),
        {**environ(), "HTTP_OPENSTACK_API_VERSION": REFUSED_VERSION},
    ):
        found, app = hiding()
        assert ask(found, request).code == 202
        assert len(app.seen) == 1


def test_audit_looks_again_afterwards() -> None:
    """It keeps nobody waiting, and shows nothing that is concealed."""
    expected = ask(Cloud(), action("os-stop"))
    found, app = hiding(mode="audit", looks=1)
    answer = ask(found, action("os-stop"))
    assert answer.code == 404
    assert SERVER in answer.fault["message"]
    assert app.bodies == [b'{"os-stop": null}']
    # Not concealed, or it cannot be told to the end:
    for looks, project in ((1, "p"), (None, "p"), (None, "q")):
        app = Cloud()
        reader = dim(MemoryServer(SERVER, project_id=project), **UNSEEN)
        reader.looks = looks
        found = make("", reader, app=app, projects=("q",), mode="audit")
        assert ask(found, action("os-stop")) == expected
        assert app.bodies == [b'{"os-stop": null}']


def test_an_event_that_cannot_be_placed_does_not_hide_another() -> None:
    mover: Any = Delivering()
    reader = dim(
        MemoryServer(SERVER, project_id="q"),
        MemoryServer(PLAIN, project_id="q"),
        unseen=frozenset({PLAIN}),
        mover=mover,
    )
    found = make("", reader, app=EventCloud(known=()), projects=("q",))
    request = environ(
        "POST",
        "/os-server-external-events",
        {"events": [event(SERVER), event(PLAIN)]},
        caller=ADMIN,
    )
    answer = ask(found, request)
    assert answer.code == 207
    assert [e["code"] for e in answer.json["events"]] == [200, 404]
    assert mover.delivered == [(SERVER, [event(SERVER)])]


# -- bodies -------------------------------------------------------------------


def acted(text: str, body: bytes = LONG, **more: Any) -> Answer:
    """Return the answer to an action with a long body."""
    request = environ("POST", f"/servers/{SERVER}/action", body)
    request.update(more.pop("environ", {}))
    reader = more.pop("reader", None) or driver()
    return ask(make(text, reader, **more), request)


def test_a_body_that_is_too_long() -> None:
    answer = acted(NO_STOP, refuse_unknown=True)
    assert answer.code == 413
    assert answer.header("Retry-After") is None
    assert answer.fault == {
        "code": 413,
        "message": "The body of a server action cannot be longer than 5000 "
        "bytes: the policy of this cloud could not be applied.",
        "state_policy": {"code": "unreadable", "retry_after": None},
    }


def test_long_bodies_of_unknown_length() -> None:
    endless = {"CONTENT_LENGTH": "", "wsgi.input_terminated": True}
    answer = acted(NO_STOP, refuse_unknown=True, environ=endless)
    assert answer.code == 413


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"mode": "warn", "refuse_unknown": True},
        {"mode": "audit", "refuse_unknown": True},
        {"disabled_by": Path(__file__), "refuse_unknown": True},
    ],
)
def test_long_bodies_go_on(more: Any) -> None:
    app = Cloud()
    assert acted(NEVER, app=app, **more).code == 202
    assert app.bodies == [LONG]


def test_long_bodies_that_no_rule_is_about_go_on() -> None:
    for text in (
        '"server:update": "!"',
        '"class:any": "role:member"\n"class:read": "role:member"',
    ):
        assert acted(text, refuse_unknown=True).code == 202
    quarantine = '"server:force_delete:quarantine": "server.vm_state:error"'
    assert acted(quarantine, refuse_unknown=True).code == 413


def test_what_nova_refuses_of_long_bodies() -> None:
    version = {"HTTP_OPENSTACK_API_VERSION": REFUSED_VERSION}
    answer = acted(NEVER, refuse_unknown=True, environ=version)
    assert answer.code == 202
    short = {"CONTENT_LENGTH": "900"}
    answer = acted(NEVER, b"{", refuse_unknown=True, environ=short)
    assert answer.code == 202


def test_a_concealed_server_is_as_absent_to_long_bodies() -> None:
    reader = driver([MemoryServer(SERVER, project_id="q")])
    app = Cloud()
    answer = acted(
        NEVER, reader=reader, app=app, projects=("q",), refuse_unknown=True
    )
    assert answer.code == 202
    assert SERVER not in app.seen[0]["PATH_INFO"]
