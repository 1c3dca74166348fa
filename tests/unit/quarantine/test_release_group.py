# SPDX-License-Identifier: Apache-2.0
"""A release says what it means for the server's group."""

from __future__ import annotations

import pytest

from state_policy.quarantine import operator
from state_policy.quarantine.conceal import Wish, conceal
from state_policy.quarantine.sweep import Sweep
from tests.unit.quarantine.memory import OWNER, Memory, Policy

WISH = Wish("delete", {"project_id": OWNER.project_id}, "req-1")


class Unreadable(Memory):
    """A mover that cannot read groups."""

    def group_broken(self, server_id: str, group: str) -> str | None:
        raise RuntimeError("the API database is gone")


def settled(mover: Memory, group: str | None) -> Memory:
    mover.add("a")
    if group is not None:
        mover.groups["a"] = group
    conceal(mover, Policy(), "a", WISH)
    Sweep(mover, Policy()).run()
    return mover


@pytest.mark.parametrize(
    ("mover", "group", "why"),
    [
        (Memory(wrong="it is crowded"), None, "it was asked for"),
        (Memory(), "g", "it was asked for"),
        (
            Memory(wrong="it is crowded"),
            "g",
            "it was asked for, but it is crowded",
        ),
        (
            Unreadable(),
            "g",
            "it was asked for, but its server group could not be read",
        ),
    ],
)
def test_told_and_done(mover: Memory, group: str | None, why: str) -> None:
    settled(mover, group)
    for dry_run in (True, False):
        done = operator.release_one(mover, Policy(), "a", dry_run)
        assert (done.why, done.acted) == (why, not dry_run)
    assert mover.groups.get("a") == group
    assert mover.mapping["a"] == OWNER


def test_the_sweep_tells_it_too() -> None:
    mover = settled(Memory(wrong="it is crowded"), "g")

    def fail() -> Exception:
        return RuntimeError("this step failed")

    mover.fail_at = len(mover.steps) + 1
    mover.failure = fail
    with pytest.raises(RuntimeError):
        operator.release_one(mover, Policy(), "a")
    (done,) = Sweep(mover, Policy()).run().done
    assert (done.step, done.why) == (
        "release",
        "its release has not ended, but it is crowded",
    )
