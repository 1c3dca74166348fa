# SPDX-License-Identifier: Apache-2.0
"""What ``warn`` and ``audit`` say is what ``enforce`` would do."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from state_policy.drivers.memory import MemoryServer
from tests.unit.wsgi.requests import SERVER, action, ask
from tests.unit.wsgi.rules import FACTS, driver, make

RULE = '"server:stop": "server.host_up:true"'


def unread() -> Any:
    """Return a driver that cannot tell whether the host is up."""
    facts = {k: v for k, v in FACTS.items() if k != "server.host_up"}
    return driver([MemoryServer(SERVER, facts=facts)])


@pytest.mark.parametrize("mode", ["enforce", "warn", "audit"])
def test_what_passes_undecided(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is written down in each mode alike, and nobody is warned."""
    caplog.set_level(logging.INFO, "state_policy.decisions")
    answer = ask(make(RULE, unread(), mode=mode), action("os-stop"))
    assert (answer.code, answer.header("Warning")) == (202, None)
    (line,) = [json.loads(r.message) for r in caplog.records]
    assert (line["verdict"], line["undecided"]) == ("allow", True)
    assert "note" not in line


def test_what_would_be_refused_undecided_is_warned_of() -> None:
    found = make(RULE, unread(), mode="warn", refuse_unknown=True)
    answer = ask(found, action("os-stop"))
    text = answer.header("Warning")
    assert answer.code == 202
    assert text is not None and "cannot be read" in text


def test_evidence_alone_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "state_policy.decisions")
    found = make('"server:stop:evidence": "@"', driver(), mode="warn")
    assert ask(found, action("os-stop")).header("Warning") is None
    (line,) = [json.loads(r.message) for r in caplog.records]
    assert line["verdict"] == "allow"
