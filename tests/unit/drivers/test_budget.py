# SPDX-License-Identifier: Apache-2.0
"""What a request waits for, and how much may hang behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from state_policy.drivers.nova.moving import budget as budgets
from state_policy.drivers.nova.moving.budget import Budget
from state_policy.engine.ports.moving import MovingError

SHORT = 0.05
LONG = 20.0


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hangs until the end of a test."""
    found = threading.Event()
    yield found
    found.set()


def fail() -> None:
    raise ValueError("this step failed")


def settled(budget: Budget) -> bool:
    """Return whether as much can be begun again as at first."""
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        try:
            budget.call(LONG, lambda: None)
        except MovingError:
            time.sleep(SHORT)
            continue
        if budget.run(LONG, {"step": lambda: None}) == ():
            return True
    return False


def test_steps_run_in_order_and_the_names_of_the_rest_are_told() -> None:
    seen: list[str] = []
    left = Budget().run(
        LONG,
        {
            "a": lambda: seen.append("a"),
            "b": fail,
            "c": lambda: seen.append("c"),
        },
    )
    assert (seen, left) == (["a", "c"], ("b",))


def test_a_step_that_hangs_does_not_hold_who_waits(
    gate: threading.Event,
) -> None:
    seen: list[str] = []
    ended = threading.Event()
    began = time.monotonic()
    left = Budget().run(
        SHORT,
        {
            "a": lambda: seen.append("a"),
            "b": lambda: gate.wait(LONG) and None,
            "c": lambda: seen.append("c"),
            "d": ended.set,
        },
    )
    assert left == ("b", "c", "d")
    assert time.monotonic() - began < LONG / 2
    gate.set()
    assert ended.wait(LONG)
    assert seen == ["a", "c"]


def test_few_may_hang(gate: threading.Event) -> None:
    budget = Budget(2)
    hang = {"hang": lambda: gate.wait(LONG) and None}
    for _ in range(2):
        assert budget.run(SHORT, hang) == ("hang",)
    seen: list[int] = []
    began = time.monotonic()
    assert budget.run(LONG, {"a": lambda: seen.append(1)}) == ("a",)
    assert time.monotonic() - began < LONG / 2
    assert seen == []
    gate.set()
    assert settled(budget)


def test_no_thread_is_made_where_the_pool_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(work: object) -> None:
        raise RuntimeError("shut down")

    budget = Budget(1)
    with monkeypatch.context() as patch:
        patch.setattr(budgets, "spawn", refuse)
        for _ in range(3):
            assert budget.run(LONG, {"a": lambda: None}) == ("a",)
        with pytest.raises(RuntimeError):
            budget.call(LONG, lambda: None)
    assert budget.run(LONG, {"a": lambda: None}) == ()


def test_a_call_returns_or_raises_what_the_function_does() -> None:
    budget = Budget()
    assert budget.call(LONG, lambda: 7) == 7
    with pytest.raises(ValueError, match="this step failed"):
        budget.call(LONG, fail)


def test_calls_are_given_up_in_time_and_few_may_hang(
    gate: threading.Event,
) -> None:
    budget = Budget(2)
    for _ in range(2):
        with pytest.raises(MovingError, match=f"no answer in {SHORT} s"):
            budget.call(SHORT, lambda: gate.wait(LONG))
    called: list[int] = []
    with pytest.raises(MovingError, match="2 others before it hang"):
        budget.call(LONG, lambda: called.append(1))
    assert called == []
    gate.set()
    assert settled(budget)


def test_any_number_may_be_called_at_a_time() -> None:
    budget = Budget(1)
    found: list[int] = []
    barrier = threading.Barrier(6)

    def call() -> None:
        barrier.wait(LONG)
        found.append(budget.call(LONG, lambda: time.sleep(SHORT) or 1))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert found == [1] * 6


def test_the_work_is_done_in_the_pool_of_nova() -> None:
    names: list[str] = []
    Budget().run(
        LONG,
        {"a": lambda: names.append(type(threading.current_thread()).__name__)},
    )
    assert names == ["ThreadWorker"]
