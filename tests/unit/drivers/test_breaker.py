# SPDX-License-Identifier: Apache-2.0
"""When a cell that did not answer is asked again."""

from __future__ import annotations

import threading

import pytest

from state_policy.drivers.nova.breaker import (
    LONGEST,
    Attempt,
    Breaker,
    CellDownError,
)


class Clock:
    """A clock that is set by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker(10, clock)


def begun(breaker: Breaker, cell: str = "a") -> Attempt:
    attempt = breaker.admit(cell)
    assert attempt.begin()
    return attempt


def hung(breaker: Breaker, cell: str = "a") -> Attempt:
    attempt = begun(breaker, cell)
    assert attempt.give_up()
    return attempt


def closed(breaker: Breaker, cell: str = "a") -> bool:
    """Return whether a cell is left alone; where it is not, try it."""
    try:
        breaker.admit(cell)
    except CellDownError:
        return True
    return False


def test_a_cell_that_answers_is_asked_again(breaker: Breaker) -> None:
    for _ in range(3):
        begun(breaker).end()
    assert not closed(breaker)


def test_a_refusal_closes_that_cell_alone(
    breaker: Breaker, clock: Clock
) -> None:
    begun(breaker, "a").end(refused=True)
    assert closed(breaker, "a")
    assert not closed(breaker, "b")
    clock.now += 9.9
    assert closed(breaker, "a")
    clock.now += 0.2
    assert not closed(breaker, "a")


def test_one_tries_while_the_others_go_without(
    breaker: Breaker, clock: Clock
) -> None:
    begun(breaker).end(refused=True)
    clock.now += 11
    attempt = begun(breaker)
    assert closed(breaker)
    attempt.end()
    assert not closed(breaker)


def test_a_try_that_never_reports_does_not_close_for_ever(
    breaker: Breaker, clock: Clock
) -> None:
    begun(breaker).end(refused=True)
    clock.now += 11
    breaker.admit("a")
    clock.now += 11
    assert not closed(breaker)


def test_each_read_that_hangs_doubles_the_pause(
    breaker: Breaker, clock: Clock
) -> None:
    attempt, lengths = begun(breaker), []
    for _ in range(8):
        attempt.give_up()
        began = clock.now
        while closed(breaker):
            clock.now += 1
        lengths.append(clock.now - began)
        clock.now += LONGEST
        attempt = begun(breaker)
    assert lengths == [10, 20, 40, 80, 160, LONGEST, LONGEST, LONGEST]
    assert breaker.hanging() == 8


def test_reads_that_end_late_shorten_the_pause_but_open_nothing(
    breaker: Breaker, clock: Clock
) -> None:
    attempts = [begun(breaker) for _ in range(4)]
    for attempt in attempts:
        attempt.give_up()
    clock.now += 11
    assert closed(breaker)
    for attempt in attempts:
        attempt.end()
    assert breaker.hanging() == 0
    assert not closed(breaker)  # the pause is of ten seconds again
    assert closed(breaker)


def test_a_late_refusal_says_nothing(breaker: Breaker, clock: Clock) -> None:
    late = hung(breaker)
    clock.now += 11
    begun(breaker).end()
    late.end(refused=True)
    assert not closed(breaker)


def test_no_free_thread_is_not_the_fault_of_the_cell(breaker: Breaker) -> None:
    attempt = breaker.admit("a")
    assert not attempt.give_up()
    assert not attempt.begin()
    assert breaker.hanging() == 0
    assert not closed(breaker)


def test_an_end_at_the_last_moment_hangs_no_more(breaker: Breaker) -> None:
    attempt = begun(breaker)
    attempt.end()
    assert attempt.give_up()
    assert breaker.hanging() == 0
    assert not closed(breaker)


def test_a_pause_may_be_longer_than_the_longest(clock: Clock) -> None:
    breaker = Breaker(LONGEST * 2, clock)
    hung(breaker)
    clock.now += LONGEST * 2 - 1
    assert closed(breaker)
    clock.now += 2
    assert not closed(breaker)


def test_many_threads_let_one_try(breaker: Breaker, clock: Clock) -> None:
    begun(breaker).end(refused=True)
    clock.now += 11
    admitted = []
    gate = threading.Barrier(8)

    def ask() -> None:
        gate.wait(10)
        if not closed(breaker):
            admitted.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(admitted) == 1
