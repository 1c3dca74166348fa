# SPDX-License-Identifier: Apache-2.0
"""A server that is deleted beside whatever is done with it.

That is an end like any other: nothing fails, nothing is said to be done that
was not, and the next sweep sees what is left.
"""

from __future__ import annotations

from typing import Any

import pytest

from state_policy.engine.ports.moving import GoneError
from state_policy.quarantine import operator
from state_policy.quarantine.conceal import Result, conceal
from state_policy.quarantine.record import Kind
from state_policy.quarantine.sweep import Sweep
from tests.unit.quarantine.memory import KEEPER, OWNER, Memory, StoreError
from tests.unit.quarantine.test_deaths import (
    POLICY,
    WISH,
    concealed,
    kinds,
    settle,
    sweep,
    world,
)


def vanish(memory: Memory) -> None:
    """Have the delete of a server end."""
    memory.set("s", deleted=True, vm_state="deleted", task_state=None)
    memory.consumers.pop("s", None)


def gone_at(memory: Memory, name: str) -> None:
    """Have it end right before a step, which then misses the server."""

    def missed(*args: Any, **kwargs: Any) -> Any:
        delattr(memory, name)
        vanish(memory)
        raise GoneError("server s is deleted by now")

    setattr(memory, name, missed)


STEPS = ["release_ports", "write_record", "delete"]


@pytest.mark.parametrize("step", STEPS)
def test_purge_by_the_sweep(step: str) -> None:
    memory = world()
    settle(memory)
    memory.pass_time(POLICY.retention)
    gone_at(memory, step)
    assert sweep(memory) == ["purge"]
    assert sweep(memory) == []


@pytest.mark.parametrize("step", STEPS)
def test_purge_by_an_operator(step: str) -> None:
    memory = world()
    settle(memory)
    gone_at(memory, step)
    done = operator.purge_one(memory, POLICY, "s")
    assert (done.step, done.error) == ("purge", None)


def test_purge_with_its_state_reset() -> None:
    memory = world()
    settle(memory)
    memory.set("s", task_state="deleting")
    gone_at(memory, "reset_state")
    assert operator.purge_one(memory, POLICY, "s").error is None


def test_purge_of_what_a_look_finds_deleted() -> None:
    memory = world()
    settle(memory)
    vanish(memory)
    with pytest.raises(operator.RefusedError, match="is deleted"):
        operator.purge_one(memory, POLICY, "s")


@pytest.mark.parametrize("seconds", [1, 599])
def test_a_delete_that_is_nearly_done_is_not_sent_again(
    seconds: float,
) -> None:
    memory = world()
    settle(memory)
    memory.delete = lambda *args: None  # type: ignore[method-assign]
    operator.purge_one(memory, POLICY, "s")
    memory.set("s", vm_state="deleted", task_state=None)
    memory.pass_time(seconds)
    assert sweep(memory) == []
    assert kinds(memory).count(Kind.PURGE) == 1
    memory.pass_time(600)
    assert sweep(memory) == ["purge"]


def test_settle_says_nothing_where_it_changed_nothing() -> None:
    memory = world()
    concealed(memory)
    settle_row = memory.settle_row

    def beaten(*args: Any) -> bool:
        vanish(memory)
        return settle_row(*args)

    memory.settle_row = beaten  # type: ignore[method-assign]
    assert sweep(memory) == []
    assert [what for what, _ in memory.told] == [
        "state_policy.quarantine.conceal"
    ]
    assert sweep(memory) == ["give back"]


@pytest.mark.parametrize("step", ["settle_row", "release_ports", "charge"])
def test_settle(step: str) -> None:
    memory = world()
    concealed(memory)
    memory.ports["s"] = frozenset({"late"})
    memory.consumers["s"] = OWNER
    gone_at(memory, step)
    report = Sweep(memory, POLICY).run()
    assert [done.error for done in report.done if done.error] == []
    assert "settle" not in [done.step for done in report.done]
    assert sweep(memory) == ["give back"]


def test_it_is_told_before_the_last_step() -> None:
    """What has ended nobody looks at; so it may be told twice."""
    memory = world()
    concealed(memory)
    vanish(memory)
    memory.steps.clear()
    memory.fail_at, memory.failure = 1, StoreError
    assert Sweep(memory, POLICY).run().failed
    assert memory.steps == ["show_deleted_row", "give"]
    assert sweep(memory) == ["give back"]
    told = [what.rpartition(".")[2] for what, _ in memory.told]
    assert told == ["conceal", "deleted", "deleted"]


def test_conceal() -> None:
    memory = world()
    gone_at(memory, "no_headroom")
    answer = conceal(memory, POLICY, "s", WISH)
    assert answer.result is Result.EXCLUDED
    assert answer.reason == "server s is deleted by now"
    assert memory.steps == []


def test_an_operator_hears_that_there_is_nothing_to_release() -> None:
    memory = world()
    settle(memory)
    gone_at(memory, "write_record")
    with pytest.raises(GoneError, match="is deleted"):
        operator.release_one(memory, POLICY, "s")


@pytest.mark.parametrize("how", [{"task_state": "deleting"}, {}])
def test_release_of_what_is_being_deleted(how: dict[str, Any]) -> None:
    """It is given back, but not counted as its owner's again."""
    memory = world()
    settle(memory)
    memory.set("s", **how)
    done = operator.release_one(memory, POLICY, "s")
    assert memory.mapping["s"] == OWNER != KEEPER
    assert memory.gone["s"] is bool(how)
    assert ("its delete is under way" in done.why) is bool(how)
