# SPDX-License-Identifier: Apache-2.0
"""A sweep of one server: refused where there is nothing to sweep."""

from __future__ import annotations

from typing import Any

import pytest

from state_policy.engine.ports.moving import MovingError, Server
from state_policy.quarantine import operator
from state_policy.quarantine.operator import RefusedError
from state_policy.quarantine.sweep import Sweep
from tests.unit.quarantine.memory import KEEPER, OWNER, DeathError, Memory
from tests.unit.quarantine.test_deaths import (
    POLICY,
    concealed,
    is_owners,
    is_settled,
    kinds,
    settle,
    world,
)

BUSY: dict[str, Any] = {"vm_state": "building", "task_state": "spawning"}


def one(memory: Memory, settle_now: bool = False) -> list[str]:
    """Sweep one server, without an error; return the steps."""
    report = Sweep(memory, POLICY).one("s", settle_now)
    assert [done for done in report.done if done.error] == []
    return [done.step for done in report.done]


def refused(memory: Memory, settle_now: bool = False) -> str:
    """Return why a sweep of one server is refused; nothing is done."""
    before = list(memory.steps)
    for dry_run in (True, False):
        with pytest.raises(RefusedError) as info:
            Sweep(memory, POLICY, dry_run=dry_run).one("s", settle_now)
    assert memory.steps == before
    return str(info.value)


@pytest.mark.parametrize("settle_now", [False, True])
def test_not_in_quarantine(settle_now: bool) -> None:
    nobody, native, owners, released = Memory(), Memory(), world(), world()
    native.add("s")
    native.set("s", owner=KEEPER)
    native.mapping["s"] = KEEPER
    settle(released)
    operator.release_one(released, POLICY, "s")
    for memory in (nobody, native, owners, released):
        assert refused(memory, settle_now) == "server s is not in quarantine"


def test_deleted() -> None:
    memory = world()
    settle(memory)
    operator.purge_one(memory, POLICY, "s")
    assert refused(memory) == "server s is deleted"


def test_deleted_while_concealed() -> None:
    """Whoever wants it settled hears that there is nothing to settle."""
    memory = world(**BUSY)
    concealed(memory)
    memory.set("s", deleted=True)
    assert one(memory, settle_now=True) == ["give back"]


def test_well() -> None:
    memory = world()
    settle(memory)
    assert one(memory) == []


def test_settled_at_once() -> None:
    memory = world(**BUSY)
    concealed(memory)
    assert one(memory) == []
    assert one(memory, settle_now=True) == ["settle"]
    is_settled(memory)
    assert refused(memory, settle_now=True) == (
        "server s is not concealed, its phase is settled"
    )


def test_a_release_is_not_turned_round() -> None:
    """It has its record and nothing else: the row is hidden still."""
    memory = world(**BUSY)
    concealed(memory)
    memory.fail_at = len(memory.steps) + 1
    with pytest.raises(DeathError):
        operator.release_one(memory, POLICY, "s")
    assert memory.row["s"].hidden
    assert kinds(memory) == ["conceal", "release"]
    assert refused(memory, settle_now=True) == (
        "server s is not concealed, its phase is releasing"
    )
    assert one(memory) == ["release"]
    is_owners(memory)


def test_what_was_done_before_a_failure_is_told() -> None:
    """The step that failed has its name."""
    memory = world(**BUSY)
    concealed(memory)
    memory.consumers["s"] = OWNER
    memory.failure = lambda: MovingError("no")
    memory.fail_at = len(memory.steps) + 1
    report = Sweep(memory, POLICY).one("s", settle_now=True)
    assert [(done.step, done.error) for done in report.done] == [
        ("finish placement", None),
        ("settle", "MovingError: no"),
    ]


def test_what_cannot_be_seen_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody knows whether there is something to sweep."""
    memory = world()

    def silent(self: Memory, server_id: str) -> Server | None:
        raise MovingError("its cell does not answer")

    monkeypatch.setattr(Memory, "look", silent)
    (done,) = Sweep(memory, POLICY).one("s").done
    assert done.error == "MovingError: its cell does not answer"
