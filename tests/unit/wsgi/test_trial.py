# SPDX-License-Identifier: Apache-2.0
"""Rules on trial are compared, and whatever befalls them nothing else."""

from __future__ import annotations

import itertools
import json
import logging
from typing import Any

import pytest

from state_policy.drivers.memory import MemoryServer
from state_policy.engine.facts import CALLER
from state_policy.wsgi import judge as judging
from state_policy.wsgi.patience import REST, Patience
from tests.unit.wsgi.requests import SERVER, action, ask, environ
from tests.unit.wsgi.rules import FACTS, driver, make
from tests.unit.wsgi.test_unread import UNSEEN, dim

TRIED = '"server:stop": "server.vm_state:stopped"'
IN_FORCE = '"server:stop": "server.locked:false"'


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    """Return a function that returns the decisions logged so far."""
    caplog.set_level(logging.INFO, "state_policy")
    return lambda: [
        json.loads(record.message)
        for record in caplog.records
        if record.name == "state_policy.decisions"
    ]


@pytest.mark.parametrize("text", ["", '"server:stop": "role:member"'])
def test_a_server_that_cannot_be_found_is_nobody_s_fault(
    text: str, lines: Any
) -> None:
    found = make(text, dim(**UNSEEN), shadow=TRIED, refuse_unknown=True)
    assert ask(found, action("os-stop")).code == 202
    assert lines() == []
    assert found.recorder.counters.read() == {"unread": 1}


@pytest.mark.parametrize("failing", ["locate", "read"])
def test_failures_are_theirs_alone(failing: str, lines: Any) -> None:
    reader = driver()

    def fail(*args: Any) -> Any:
        raise RuntimeError

    setattr(reader, failing, fail)
    found = make("", reader, shadow=TRIED, refuse_unknown=True)
    assert ask(found, action("os-stop")).code == 202
    assert lines() == []
    assert found.recorder.counters.read() == {"fault": 1}


def test_facts_of_the_rules_in_force_are_read_first_and_alone(
    lines: Any,
) -> None:
    reader = driver()
    found = make(IN_FORCE, reader, shadow=TRIED, refuse_unknown=True)
    assert ask(found, action("os-stop")).code == 202
    assert reader.asked == [
        ("locate", SERVER),
        ("read", frozenset({"server.locked"})),
        ("read", frozenset({"server.vm_state", "server.task_state"})),
    ]
    (line,) = lines()
    assert (line["note"], line["shadow"]["verdict"]) == ("shadow", "deny")


def test_what_is_known_is_not_read_again() -> None:
    reader = driver()
    text = TRIED.replace("stopped", "active")
    ask(make(text, reader, shadow=TRIED), action("os-stop"))
    assert [what for what, _ in reader.asked].count("read") == 1


def test_facts_that_fail_for_the_trial_refuse_nothing() -> None:
    reader = driver()
    read = reader.read

    def some(caller: Any, location: Any, keys: Any) -> Any:
        if "server.vm_state" in keys:
            raise RuntimeError
        return read(caller, location, keys)

    reader.read = some  # type: ignore[method-assign]
    found = make(IN_FORCE, reader, shadow=TRIED, refuse_unknown=True)
    assert ask(found, action("os-stop")).code == 202
    refused = make('"server:stop": "server.locked:true"', reader, shadow=TRIED)
    assert ask(refused, action("os-stop")).code == 409


def test_what_could_not_be_read_for_the_trial_is_not_compared(
    lines: Any,
) -> None:
    known = {k: v for k, v in FACTS.items() if k != "server.vm_state"}
    reader = driver([MemoryServer(SERVER, facts=known)])
    found = make(IN_FORCE, reader, shadow=TRIED, refuse_unknown=True)
    assert ask(found, action("os-stop")).code == 202
    assert lines() == []
    # What the rules in force lack is what they would be rid of.
    better = make(TRIED, reader, shadow=IN_FORCE, refuse_unknown=True)
    assert ask(better, action("os-stop")).code == 503
    assert ["shadow" in line for line in lines()] == [True, False]


def test_the_trial_knows_the_user_it_asks_for(lines: Any) -> None:
    """Some mappings name none: who asks for him has the row read."""
    reader = driver()
    read = reader.read

    def some(caller: Any, location: Any, keys: Any) -> Any:
        found = read(caller, location, keys)
        if CALLER not in keys:
            found[CALLER]["target"]["user_id"] = None
        return found

    reader.read = some  # type: ignore[method-assign]
    tried = '"server:stop": "not user_id:%(user_id)s"'
    found = make(IN_FORCE, reader, shadow=tried)
    assert ask(found, action("os-stop")).code == 202
    (line,) = lines()
    assert line["shadow"]["verdict"] == "deny"


def test_a_server_that_is_not_there_is_not_compared(lines: Any) -> None:
    for text in ("", IN_FORCE):
        reader = driver()
        reader.servers.clear()
        found = make(text, reader, shadow=TRIED)
        assert ask(found, action("os-stop")).code == 202
        assert lines() == []


def test_what_both_allow_reads_nothing() -> None:
    reader = driver()
    found = make("", reader, shadow=TRIED)
    assert ask(found, action("os-start")).code == 202
    assert ask(found, environ("DELETE")).code == 202
    assert reader.asked == []


def test_a_long_wait_spares_those_that_follow(
    monkeypatch: pytest.MonkeyPatch,
    lines: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    monkeypatch.setattr(judging, "Patience", lambda: Patience(lambda: now[0]))
    reader = driver()
    read = reader.read
    seconds = itertools.chain([0.5, 5.0], itertools.repeat(0.0))

    def slow(*args: Any) -> Any:
        now[0] += next(seconds)
        return read(*args)

    reader.read = slow  # type: ignore[method-assign]
    found = make("", reader, shadow=TRIED)
    for _ in range(4):
        assert ask(found, action("os-stop")).code == 202
    assert len(lines()) == 2
    assert "not asked for 60 s" in caplog.text
    now[0] += REST
    assert ask(found, action("os-stop")).code == 202
    assert len(lines()) == 3


def test_a_wait_that_ends_in_a_failure_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(judging, "Patience", lambda: Patience(lambda: now[0]))
    reader = dim(**UNSEEN)
    locate, asked = reader.locate, []

    def slow(server_id: str) -> Any:
        asked.append(server_id)
        now[0] += 5.0
        return locate(server_id)

    reader.locate = slow  # type: ignore[method-assign]
    found = make("", reader, shadow=TRIED)
    for _ in range(3):
        assert ask(found, action("os-stop")).code == 202
    assert len(asked) == 1
