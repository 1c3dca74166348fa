# SPDX-License-Identifier: Apache-2.0
"""Whatever step a process dies at, the next sweep ends what it began."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from state_policy.engine.ports.moving import Owner, Port
from state_policy.quarantine import operator
from state_policy.quarantine.conceal import Result, Wish, conceal
from state_policy.quarantine.record import Kind, load
from state_policy.quarantine.sweep import Sweep
from tests.unit.quarantine.memory import (
    KEEPER,
    OWNER,
    DeathError,
    Memory,
    Policy,
    StoreError,
)

POLICY = Policy()
WISH = Wish(
    operation="delete",
    credentials={
        "project_id": OWNER.project_id,
        "user_id": OWNER.user_id,
        "roles": ["member"],
        "is_admin": False,
    },
    request_id="req-1",
)


def world(**more: Any) -> Memory:
    """Return a cloud with one server in a group, with two ports."""
    memory = Memory()
    memory.add("s", ports=(Port("theirs"), Port("novas", True)), **more)
    memory.groups["s"] = "group"
    return memory


def kinds(memory: Memory) -> list[Kind]:
    """Return the kinds of the records, the oldest first."""
    return [load(text).kind for _, text in memory.records]


def sweep(memory: Memory) -> list[str]:
    """Run a sweep in which nothing may fail."""
    report = Sweep(memory, POLICY).run()
    assert [done for done in report.done if done.error] == []
    return [done.step for done in report.done]


def settle(memory: Memory) -> None:
    """Bring a server into quarantine, without any fault."""
    assert conceal(memory, POLICY, "s", WISH).result is Result.MOVED
    assert sweep(memory) == ["settle"]


def is_settled(memory: Memory) -> None:
    """Every store says that it is the quarantine project's."""
    row = memory.row["s"]
    assert (row.owner, row.hidden, row.locked_by) == (KEEPER, False, "admin")
    assert memory.mapping["s"] == KEEPER
    assert memory.consumers["s"] == KEEPER
    assert memory.ports["s"] == frozenset()
    assert memory.deleted_ports == ["novas"]
    assert "s" not in memory.groups


def is_owners(memory: Memory) -> None:
    """Every store says that it is its owner's."""
    row = memory.row["s"]
    assert (row.owner, row.hidden, row.locked_by) == (OWNER, False, None)
    assert memory.mapping["s"] == OWNER
    assert memory.consumers["s"] == OWNER
    assert memory.groups["s"] == "group"


def is_deleted(memory: Memory) -> None:
    """Nothing of it is left."""
    assert memory.row["s"].deleted
    assert "s" not in memory.consumers


def do_conceal(memory: Memory) -> None:
    conceal(memory, POLICY, "s", WISH)


def do_sweep(memory: Memory) -> None:
    Sweep(memory, POLICY).run()


def do_release(memory: Memory) -> None:
    operator.release_one(memory, POLICY, "s")


def do_purge(memory: Memory) -> None:
    operator.purge_one(memory, POLICY, "s")


Act = Callable[[Memory], None]
Check = Callable[[Memory], None]


def concealed(memory: Memory) -> None:
    assert conceal(memory, POLICY, "s", WISH).result is Result.MOVED


STORIES: list[tuple[str, Act, Act, Check]] = [
    ("conceal", lambda memory: None, do_conceal, is_settled),
    ("settle", concealed, do_sweep, is_settled),
    ("release", settle, do_release, is_owners),
    ("release of a concealed server", concealed, do_release, is_owners),
    ("purge", settle, do_purge, is_deleted),
]


def steps_of(before: Act, act: Act) -> int:
    memory = world()
    before(memory)
    memory.steps.clear()
    act(memory)
    return len(memory.steps)


CASES = [
    pytest.param(before, act, check, number, failure, id=f"{name}-{number}")
    for name, before, act, check in STORIES
    for failure in (DeathError, StoreError)
    for number in range(steps_of(before, act))
]


@pytest.mark.parametrize("before,act,check,number,failure", CASES)
def test_the_next_sweep_ends_it(
    before: Act,
    act: Act,
    check: Check,
    number: int,
    failure: type[BaseException],
) -> None:
    memory = world()
    before(memory)
    began = len(memory.records)
    memory.steps.clear()
    memory.fail_at, memory.failure = number, failure
    with contextlib.suppress(failure):
        act(memory)
    assert memory.fail_at is None, "the fault was not reached"
    wrote = len(memory.records) > began
    if act is do_conceal and not wrote:
        is_owners(memory)
        return
    for _ in range(2):
        memory.pass_time(700)
        sweep(memory)
    # what was not written down was not begun
    ended = check if wrote else is_settled
    ended(memory)
    count = len(memory.records)
    assert sweep(memory) == []
    assert len(memory.records) == count


def test_every_story_has_steps() -> None:
    for name, before, act, _ in STORIES:
        assert steps_of(before, act) >= 1, name
    assert steps_of(lambda memory: None, do_conceal) == 5


@pytest.mark.parametrize("number", range(5))
def test_no_error_reaches_the_client_after_the_row(number: int) -> None:
    memory = world()
    memory.fail_at, memory.failure = number, StoreError
    answer = conceal(memory, POLICY, "s", WISH)
    if number == 0:
        assert answer.result is Result.EXCLUDED
        is_owners(memory)
    else:
        assert answer.result is Result.MOVED


def test_two_sweeps_at_once() -> None:
    """Both have looked and are about to settle; one loses, and says so."""
    memory = world()
    concealed(memory)
    settle_row, meeting, row = (
        memory.settle_row,
        threading.Barrier(2, timeout=30),
        threading.Lock(),
    )

    def settle_together(*args: Any) -> bool:
        meeting.wait()
        with row:  # as a database has it
            return settle_row(*args)

    memory.settle_row = settle_together  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as pool:
        found = [
            future.result()
            for future in [pool.submit(sweep, memory) for _ in range(2)]
        ]
    assert sorted(found) == [[], ["settle"]]
    assert kinds(memory) == [Kind.CONCEAL, Kind.SETTLE]
    assert len([1 for what, _ in memory.told if "settle" in what]) == 1
    is_settled(memory)


def test_losers_answer_like_the_winner() -> None:
    memory = world()
    assert [
        conceal(memory, POLICY, "s", WISH).result for _ in range(3)
    ] == 3 * [Result.MOVED]
    assert kinds(memory) == [Kind.CONCEAL]


def test_a_loser_that_stumbles_answers_like_the_winner() -> None:
    """The winner takes the last room while the loser looks for it."""
    memory = world()
    room = memory.no_headroom

    def taken(server_id: str, target: Owner) -> str | None:
        memory.no_headroom = room  # type: ignore[method-assign]
        concealed(memory)
        return "full"

    memory.no_headroom = taken  # type: ignore[method-assign]
    assert conceal(memory, POLICY, "s", WISH).result is Result.MOVED
    assert kinds(memory) == [Kind.CONCEAL]


def test_a_loser_that_fails_answers_like_the_winner() -> None:
    memory = world()
    room = memory.no_headroom

    def fail(server_id: str, target: Owner) -> str | None:
        memory.no_headroom = room  # type: ignore[method-assign]
        concealed(memory)
        raise StoreError("no answer in time")

    memory.no_headroom = fail  # type: ignore[method-assign]
    assert conceal(memory, POLICY, "s", WISH).result is Result.MOVED
    assert kinds(memory) == [Kind.CONCEAL]


def test_a_transaction_whose_end_was_not_seen() -> None:
    """The connection broke after the commit: the move goes on."""
    memory = world()
    conceal_row = memory.conceal_row

    def break_after(*args: Any) -> bool:
        conceal_row(*args)
        raise StoreError("the connection broke")

    memory.conceal_row = break_after  # type: ignore[method-assign]
    assert conceal(memory, POLICY, "s", WISH).result is Result.MOVED
    assert memory.mapping["s"] == KEEPER
    assert memory.ports["s"] == frozenset()
