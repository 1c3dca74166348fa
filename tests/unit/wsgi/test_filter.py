# SPDX-License-Identifier: Apache-2.0
"""The road of a request, step by step."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.drivers.memory.answers import REFUSED_VERSION
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.facts import Age, Facts
from state_policy.engine.ports.effects import Asked, Outcome
from state_policy.wsgi import Filter
from tests.unit.wsgi.requests import (
    ADMIN,
    FOREIGNER,
    SERVER,
    Cloud,
    action,
    ask,
    environ,
)
from tests.unit.wsgi.rules import driver, make

NO_STOP = '"server:stop": "server.vm_state:stopped"'
NEVER = '"class:any": "!"'
SLOW_BUILD = '"server:delete:quarantine": "server.vm_state:active"'


def questions(reader: Driver) -> list[str]:
    """Return what a reader was asked, by the names of the questions."""
    return [name for name, _ in reader.asked]


def reached(found: Filter) -> bool:
    """Return whether the last request went on."""
    app: Any = found.app
    return bool(app.seen)


class Mover:
    """An effect that stands for quarantine."""

    verdict = Verdict.QUARANTINE

    def __init__(self, response: Any) -> None:
        self.response = response
        self.decisions: list[Decision] = []

    def apply(self, asked: Asked, decision: Decision, facts: Facts) -> Outcome:
        """Keep the decision."""
        self.decisions.append(decision)
        reason = None if self.response else "excluded"
        return Outcome(self.response, reason)


def moved(request: Any, start_response: Any) -> list[bytes]:
    """Answer as the API does to a delete."""
    start_response("204 No Content", [])
    return []


# -- what costs nothing -------------------------------------------------------


def test_without_rules_nothing_is_read() -> None:
    reader = driver()
    found = make("", reader)
    assert ask(found, action("os-stop")).code == 202
    assert ask(found, environ("DELETE")).code == 202
    assert reader.asked == []


def test_without_rules_bodies_are_not_touched() -> None:
    request = action("os-stop")
    stream, given = request["wsgi.input"], dict(request)
    found = make("", driver())
    ask(found, request)
    app: Any = found.app
    assert app.seen == [given]
    assert app.seen[0]["wsgi.input"] is stream


def test_rules_of_other_operations_cost_nothing() -> None:
    reader = driver()
    ask(make(NO_STOP, reader), action("os-start"))
    assert reader.asked == []


def test_a_rule_on_the_caller_alone_costs_nothing_when_it_allows() -> None:
    reader = driver()
    found = make('"server:stop": "role:member"', reader)
    assert ask(found, action("os-stop")).code == 202
    assert reader.asked == []


def test_what_the_caller_settles_is_not_looked_up() -> None:
    reader = driver()
    found = make(
        '"server:stop": "role:member or server.vm_state:stopped"', reader
    )
    assert ask(found, action("os-stop")).code == 202
    assert reader.asked == []


def test_owners_are_compared_with_the_server() -> None:
    text = '"server:stop": "user_id:%(user_id)s"'
    assert ask(make(text, driver()), action("os-stop")).code == 202
    mate = {**FOREIGNER, "project_id": "p"}
    refused = ask(make(text, driver()), action("os-stop", caller=mate))
    assert refused.code == 403


def test_only_named_facts_are_read_and_rights_only_before_an_answer() -> None:
    reader = driver()
    found = make('"server:stop": "server.vm_state:active"', reader)
    assert ask(found, action("os-stop")).code == 202
    assert reader.asked == [
        ("locate", SERVER),
        ("read", frozenset({"server.vm_state", "server.task_state"})),
    ]


def test_a_server_that_is_not_there_is_for_the_cloud() -> None:
    reader = driver([MemoryServer("other")])
    found = make(NEVER, reader)
    assert ask(found, action("os-stop")).code == 202
    assert questions(reader) == ["locate"]


# -- refusals -----------------------------------------------------------------


def test_refusal() -> None:
    reader = driver()
    found = make(NO_STOP, reader)
    answer = ask(found, action("os-stop"))
    assert answer.code == 409
    assert not reached(found)
    assert answer.fault["message"].startswith(
        f"Cannot 'stop' instance {SERVER} while it is in vm_state active."
    )
    assert answer.fault["state_policy"]["code"] == "wrong_state"


def test_never_is_403() -> None:
    answer = ask(make(NEVER, driver()), action("os-stop"))
    assert answer.code == 403
    assert "policy of this cloud" in answer.fault["message"]
    assert answer.header("Retry-After") is None


def test_later_tells_when() -> None:
    text = '"server:stop": "server.state_age:>=2h"'
    answer = ask(make(text, driver()), action("os-stop"))
    assert (answer.code, answer.header("Retry-After")) == (409, "3600")


@pytest.mark.parametrize("caller", [FOREIGNER, {**FOREIGNER, "roles": []}])
def test_foreign_servers_are_for_the_cloud(caller: Any) -> None:
    found = make(NEVER, driver())
    assert ask(found, action("os-stop", caller=caller)).code == 202
    assert reached(found)


def test_without_the_right_the_cloud_answers() -> None:
    reader = driver(forbidden={"os_compute_api:servers:stop"})
    found = make(NEVER, reader)
    assert ask(found, action("os-stop")).code == 202
    assert reached(found)


def test_nobody_known_is_for_the_cloud() -> None:
    found = make(NEVER, driver())
    assert ask(found, action("os-stop", caller=None)).code == 202


def test_nobody_known_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """As a filter in the wrong place does, which otherwise does nothing."""
    found = make(NO_STOP, driver())
    for _ in range(3):
        ask(found, action("os-stop", caller=None))
    assert found.recorder.counters.read() == {"nobody": 3}
    (line,) = [r for r in caplog.records if r.levelno >= logging.WARNING]
    assert "who sent it is not known" in line.getMessage()


def test_administrators_are_bound_too() -> None:
    answer = ask(make(NEVER, driver()), action("os-stop", caller=ADMIN))
    assert answer.code == 403


def test_a_refused_version_is_for_the_cloud() -> None:
    found = make(NEVER, driver())
    request = action("os-stop", HTTP_OPENSTACK_API_VERSION=REFUSED_VERSION)
    assert ask(found, request).code == 202


def test_another_project_in_the_path_is_for_the_cloud() -> None:
    found = make(NEVER, driver())
    path = f"/abc/servers/{SERVER}"
    assert ask(found, environ("DELETE", path)).code == 202
    own = {**ADMIN, "project_id": "abc"}
    assert ask(found, environ("DELETE", path, caller=own)).code == 403


# -- facts that are missing ---------------------------------------------------


def unread() -> Driver:
    """Return a driver that cannot read states."""
    return Driver([MemoryServer(SERVER)])


def test_undecided_goes_on() -> None:
    found = make(NO_STOP, unread())
    assert ask(found, action("os-stop")).code == 202


def test_undecided_is_refused_where_that_is_wanted() -> None:
    found = make(NO_STOP, unread(), refuse_unknown=True)
    answer = ask(found, action("os-stop"))
    assert (answer.code, answer.header("Retry-After")) == (503, "30")
    assert answer.fault["state_policy"]["code"] == "unreadable"


# -- effects ------------------------------------------------------------------


def test_quarantine_answers() -> None:
    effect = Mover(moved)
    found = make(SLOW_BUILD, driver(), effects={Verdict.QUARANTINE: effect})
    assert ask(found, environ("DELETE")).code == 204
    assert not reached(found)
    assert effect.decisions[0].rule == "server:delete:quarantine"


def test_excluded_from_quarantine_goes_on() -> None:
    effect = Mover(None)
    found = make(SLOW_BUILD, driver(), effects={Verdict.QUARANTINE: effect})
    assert ask(found, environ("DELETE")).code == 202
    assert len(effect.decisions) == 1


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", 204),
        (b"no json", 204),
        ("é".encode(), 204),
        # Longer than what is read of an action's.
        (b" " * 10_000, 204),
        (b" " * 10_000 + b"\xff", 202),
        (b"\xff", 202),
        (b"\xc3", 202),
    ],
)
def test_what_the_api_cannot_read_moves_nothing(
    content: bytes, code: int
) -> None:
    effect = Mover(moved)
    app: Any = Cloud()
    effects = {Verdict.QUARANTINE: effect}
    found = make(SLOW_BUILD, driver(), app=app, effects=effects)
    assert ask(found, environ("DELETE", body=content)).code == code
    assert len(effect.decisions) == (code == 204)
    assert app.bodies == ([] if code == 204 else [content])


def test_a_delete_that_ends_early_moves_nothing() -> None:
    effect = Mover(moved)
    found = make(SLOW_BUILD, driver(), effects={Verdict.QUARANTINE: effect})
    request = environ("DELETE", body=b"{}", CONTENT_LENGTH="9")
    assert ask(found, request).code == 202
    assert effect.decisions == []


def test_ids_that_only_a_collation_finds_are_not_deleted() -> None:
    effect = Mover(moved)
    found = make(SLOW_BUILD, driver(), effects={Verdict.QUARANTINE: effect})
    answer = ask(found, environ("DELETE", f"/servers/{SERVER} "))
    assert (answer.code, effect.decisions) == (202, [])


def test_ids_that_only_a_collation_finds_are_judged() -> None:
    path = f"/servers/{SERVER} /action"
    request = environ("POST", path, {"os-stop": None})
    assert ask(make(NEVER, driver()), request).code == 403


def test_what_nothing_carries_out_is_left_out() -> None:
    found = make(
        '"server:delete:escalate": "@"\n"server:delete:brake": "@"', driver()
    )
    assert ask(found, environ("DELETE")).code == 202


# -- modes --------------------------------------------------------------------


def test_warning() -> None:
    found = make(NO_STOP, driver(), mode="warn")
    answer = ask(found, action("os-stop"))
    assert answer.code == 202
    text = answer.header("Warning")
    assert text is not None
    assert text.startswith("299 state-policy \"Cannot 'stop' instance")


def test_no_warning_without_a_verdict() -> None:
    found = make(NO_STOP, driver(), mode="warn")
    assert ask(found, action("os-start")).header("Warning") is None


def test_audit_changes_no_byte() -> None:
    effect = Mover(moved)
    text = f"{NO_STOP}\n{SLOW_BUILD}"
    for request in (action("os-stop"), environ("DELETE")):
        plain, cloud = Cloud(), Cloud()
        found = make(
            text,
            driver(),
            app=cloud,
            mode="audit",
            effects={Verdict.QUARANTINE: effect},
        )
        body = request["wsgi.input"].getvalue()
        expected = ask(plain, {**request, "wsgi.input": _again(request)})
        assert ask(found, request) == expected
        assert cloud.bodies == [body]
    assert effect.decisions == []


def _again(request: dict[str, Any]) -> Any:
    stream = request["wsgi.input"]
    return type(stream)(stream.getvalue())


def test_switched_off(tmp_path: Path) -> None:
    switch = tmp_path / "off"
    found = make(NEVER, driver(), disabled_by=switch)
    assert ask(found, action("os-stop")).code == 403
    switch.touch()
    assert ask(found, action("os-stop")).code == 202
    switch.unlink()
    assert ask(found, action("os-stop")).code == 403


def test_shadow_rules_only_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "state_policy.decisions")
    found = make("", driver(), shadow=NO_STOP)
    assert ask(found, action("os-stop")).code == 202
    assert ask(found, action("os-start")).code == 202
    (line,) = [json.loads(r.message) for r in caplog.records]
    assert (line["verdict"], line["note"]) == ("allow", "shadow")
    assert (line["shadow"]["verdict"], line["shadow"]["code"]) == ("deny", 409)


# -- failures -----------------------------------------------------------------


class Failing(Driver):
    """Fails at one question."""

    failing = ""

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "failing"):
            raise RuntimeError("secret: adminPass=s3cr3t")
        return object.__getattribute__(self, name)


@pytest.mark.parametrize(
    "failing", ["caller", "locate", "read", "may", "version_accepted"]
)
@pytest.mark.parametrize("mode", ["enforce", "warn", "audit"])
def test_failures_of_ours_go_on(
    failing: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader = Failing([MemoryServer(SERVER, facts=dict(driver_facts()))])
    found = make(NO_STOP, reader, mode=mode)
    reader.failing = failing
    if failing == "version_accepted":
        reader.failing = ""
        object.__setattr__(found, "answers", None)
    body = {"os-stop": {"adminPass": "s3cr3t"}}
    request = environ("POST", f"/servers/{SERVER}/action", body)
    answer = ask(found, request)
    cloud: Any = found.app
    assert (answer.code, cloud.bodies) == (202, [json.dumps(body).encode()])
    assert found.recorder.counters.read()["fault"] == 1
    assert "s3cr3t" not in caplog.text


def driver_facts() -> Any:
    """Return the facts of the usual server."""
    return driver().servers[SERVER].facts


@pytest.mark.parametrize("failing", ["circumstances", "natively_allowed"])
def test_a_refusal_stands_without_its_explanation(failing: str) -> None:
    reader = Failing([MemoryServer(SERVER, facts=dict(driver_facts()))])
    found = make(NO_STOP, reader)
    reader.failing = failing
    answer = ask(found, action("os-stop"))
    assert answer.code == 409
    assert answer.fault["message"].startswith("Cannot 'stop' instance")


def test_failing_effects_go_on() -> None:
    class Bad(Mover):
        def apply(self, *args: Any) -> Outcome:
            raise RuntimeError

    found = make(SLOW_BUILD, driver(), effects={Verdict.QUARANTINE: Bad(None)})
    assert ask(found, environ("DELETE")).code == 202


# -- the log ------------------------------------------------------------------


def test_decision_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "state_policy.decisions")
    text = '"server:stop": "server.vm_state:stopped or server.host:x"'
    found = make(text, driver(facts={"server.state_age": Age(5.0, False)}))
    ask(found, action("os-stop", {"token": "s3cr3t"}))
    ask(found, action("os-start"))
    (line,) = [json.loads(r.message) for r in caplog.records]
    assert line.pop("decision") and line.pop("revision")
    assert line == {
        "operation": "stop",
        "server": SERVER,
        "verdict": "deny",
        "code": 409,
        "retry_after": None,
        "undecided": False,
        "rule": "server:stop",
        "rules": ["server:stop"],
        "facts": {"server.vm_state": "active", "server.host": "secret-host"},
        "user": "u",
        "project": "p",
        "roles": ["member"],
        "request": "req-1",
        "mode": "enforce",
    }


def test_unknown_actions_are_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = make(NO_STOP, driver())
    for _ in range(3):
        assert ask(found, action("os-new")).code == 202
    assert caplog.text.count("os-new") == 1
    assert found.recorder.counters.read()["unknown_action"] == 3


def test_names_of_unknown_actions_do_not_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = make(NO_STOP, driver())
    for number in range(200):
        ask(found, action(f"new-{number}" + "x" * 500))
    assert len(caplog.records) == 50
    assert max(len(r.getMessage()) for r in caplog.records) < 150
