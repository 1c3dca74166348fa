# SPDX-License-Identifier: Apache-2.0
"""What is written down is whole, and writing it down never fails."""

from __future__ import annotations

import io
import logging
import threading
from typing import Any

import pytest
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log as oslo_log

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.facts import Age
from state_policy.engine.ports.reading import Caller
from state_policy.wsgi.record import Counters, Recorder, describe, plain


def test_counters_lose_nothing_between_threads() -> None:
    counters = Counters()

    def count() -> None:
        for _ in range(2000):
            counters.add("x")

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counters.read() == {"x": 16000}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (3, 3),
        ("x", "x"),
        (Age(61.6, False), {"seconds": 62, "exact": False}),
        (frozenset({"b", "a"}), ["a", "b"]),
        (b"x", "b'x'"),
    ],
)
def test_values(value: Any, expected: Any) -> None:
    assert plain(value) == expected


def test_the_caller_s_credentials_are_not_a_fact() -> None:
    decision = Decision(
        "stop",
        Verdict.DENY,
        facts={"caller": {"roles": ["x"]}, "server.locked": True},
    )
    line = describe(decision, Caller({}, "req-1"), "id")
    assert line["facts"] == {"server.locked": True}


def test_a_fault_tells_no_value_to_the_log_of_the_api() -> None:
    """oslo.log adds the text of an exception while it is handled."""

    class OddError(Exception):
        pass

    conf = cfg.ConfigOpts()
    oslo_log.register_options(conf)
    conf([])
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatters.ContextFormatter(config=conf))
    log = logging.getLogger("state_policy.filter")
    log.addHandler(handler)
    try:
        try:
            raise OddError("adminPass=hunter2")
        except OddError as error:
            log.error("plainly")
            Recorder("enforce").fault(error)
    finally:
        log.removeHandler(handler)
    plainly, ours = written.getvalue().splitlines()
    assert "hunter2" in plainly  # so the test would see it
    assert "OddError at " in ours
    assert "hunter2" not in ours


def test_a_line_that_cannot_be_written_is_a_fault() -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    recorder = Recorder("enforce")
    decision = Decision("stop", Verdict.DENY, facts={"x": Odd()})
    recorder.decision(decision, Caller({}, "req-1"), "id")
    assert recorder.counters.read() == {"decision.deny": 1, "fault": 1}
