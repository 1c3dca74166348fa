# SPDX-License-Identifier: Apache-2.0
"""A sweep that looked at a server just before somebody else went on with it.

Whatever it meant to do, what was done meanwhile stands.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from state_policy.engine.ports.moving import OvertakenError, Port, Server
from state_policy.quarantine import operator, purge
from state_policy.quarantine.record import Kind, dump, of
from state_policy.quarantine.sweep import Sweep
from tests.unit.quarantine.memory import KEEPER, OWNER, Memory
from tests.unit.quarantine.test_deaths import (
    POLICY,
    concealed,
    is_owners,
    settle,
    sweep,
    world,
)


def release(memory: Memory) -> None:
    """Give the server back, as an operator does."""
    operator.release_one(memory, POLICY, "s")


def overtake(
    memory: Memory,
    name: str,
    act: Callable[[Memory], None],
    first: bool = False,
) -> None:
    """Have something happen when a method is called next, after its work.

    :param first: before its work
    """
    method = getattr(memory, name)

    def overtaken(*args: Any, **kwargs: Any) -> Any:
        delattr(memory, name)
        if first:
            act(memory)
        found = method(*args, **kwargs)
        if not first:
            act(memory)
        return found

    setattr(memory, name, overtaken)


def settled() -> Memory:
    """Return a cloud with one server in quarantine."""
    memory = world()
    settle(memory)
    return memory


def test_a_released_server_is_not_purged() -> None:
    memory = settled()
    memory.pass_time(POLICY.retention)
    overtake(memory, "look", release)
    assert Sweep(memory, POLICY).run().done == ()
    is_owners(memory)
    assert "delete" not in memory.steps


def test_not_even_where_it_is_seen_too_late() -> None:
    memory = settled()
    seen = memory.look("s")
    assert isinstance(seen, Server)
    release(memory)
    record = of(seen)
    assert record is not None
    with pytest.raises(OvertakenError):
        purge.purge(memory, seen, record)
    is_owners(memory)
    assert memory.gone["s"] is False


@pytest.mark.parametrize("when", ["release_ports", "write_record"])
def test_nor_where_the_release_comes_in_between(when: str) -> None:
    memory = settled()
    memory.pass_time(POLICY.retention)
    overtake(memory, when, release)
    assert Sweep(memory, POLICY).run().done == ()
    is_owners(memory)
    assert sweep(memory) == []


def test_nor_where_the_release_has_only_begun() -> None:
    memory = settled()
    memory.pass_time(POLICY.retention)
    overtake(memory, "write_record", begin_release)
    assert Sweep(memory, POLICY).run().done == ()
    assert not memory.row["s"].deleted
    assert sweep(memory) == ["release"]
    is_owners(memory)


def test_a_released_server_is_not_settled() -> None:
    memory = world()
    concealed(memory)
    overtake(memory, "consumer", begin_release)
    assert Sweep(memory, POLICY).run().done == ()
    assert sweep(memory) == ["release"]
    is_owners(memory)


def begin_release(memory: Memory) -> None:
    """Write a release down, and no more."""
    seen = memory.look("s")
    record = of(seen)
    assert seen is not None
    assert record is not None
    text = dump(record.next(Kind.RELEASE, memory.now()))
    memory.write_record("s", OWNER, text, seen.record)


@pytest.mark.parametrize("again", [False, True])
def test_steps_that_a_request_left_behind(again: bool) -> None:
    """They end when the server was released, or concealed anew."""
    memory = world()
    steps: dict[str, Callable[[], None]] = {}

    def leave(
        seconds: float, left: Mapping[str, Callable[[], None]]
    ) -> tuple[str, ...]:
        steps.update(left)
        return tuple(left)

    memory.within = leave  # type: ignore[method-assign]
    concealed(memory)
    del memory.within  # type: ignore[method-assign]
    release(memory)
    if again:
        memory.pass_time(1)
        concealed(memory)
    before = copy.deepcopy(memory)
    for name in ("placement", "consoles", "notification"):
        steps[name]()
    assert memory == before
    steps["ports"]()
    assert memory.ports == before.ports


def test_a_release_that_another_has_ended() -> None:
    """The server is concealed anew by then, and stays so."""
    memory = settled()
    begin_release(memory)
    memory.pass_time(1)

    def go_on(memory: Memory) -> None:
        release(memory)
        memory.pass_time(1)
        concealed(memory)

    for when, first in (
        ("look", False),
        ("charge", False),
        ("newest_record", False),
        ("give", True),
        ("give", False),
        ("return_row", True),
    ):
        other = copy.deepcopy(memory)
        overtake(other, when, go_on, first)
        with contextlib.suppress(OvertakenError, operator.RefusedError):
            operator.release_one(other, POLICY, "s")
        assert other.row["s"].hidden, when
        assert other.mapping["s"] == KEEPER
        assert other.consumers["s"] == KEEPER
        assert sweep(other) == ["settle"]
        assert other.row["s"].owner == KEEPER


def test_a_release_that_another_has_ended_is_left() -> None:
    """Its owner has locked the server since, and was told of it once."""
    memory = settled()
    begin_release(memory)
    memory.told.clear()

    def go_on(memory: Memory) -> None:
        release(memory)
        memory.set("s", locked_by="owner")

    for when, told in (("give", 1), ("return_row", 2)):
        other = copy.deepcopy(memory)
        overtake(other, when, go_on, first=True)
        release(other)
        assert other.row["s"].locked_by == "owner", when
        assert len(other.told) == told, when
        assert sweep(other) == []


def test_a_delete_that_began_beside_a_release() -> None:
    """Nova has been asked to delete it, and counts it no more."""
    memory = settled()
    overtake(
        memory, "return_row", lambda _: memory.set("s", task_state="deleting")
    )
    release(memory)
    assert memory.gone["s"]


@pytest.mark.parametrize("when", ["look", "consumer", "charge"])
def test_a_released_server_is_its_owners_in_placement(when: str) -> None:
    memory = settled()
    memory.consumers["s"] = OWNER  # what a request left undone
    overtake(memory, when, release)
    Sweep(memory, POLICY).run()
    is_owners(memory)


def test_a_released_servers_ports_are_left_alone() -> None:
    memory = settled()

    def use_again(memory: Memory) -> None:
        release(memory)
        memory.ports["s"] = frozenset({"theirs"})

    overtake(memory, "bound_ports", use_again)
    memory.ports["s"] = frozenset({"theirs"})
    Sweep(memory, POLICY).run()
    assert memory.ports["s"] == frozenset({"theirs"})


def test_a_port_that_came_back_is_still_its_owners() -> None:
    """Compute takes it for its own, once it was taken from the server."""
    memory = settled()
    memory.set("s", ports=(Port("theirs", True), Port("late", True)))
    memory.ports["s"] = frozenset({"theirs", "late"})
    assert sweep(memory) == ["finish ports"]
    assert memory.deleted_ports == ["novas", "late"]
    assert memory.row["s"].owner == KEEPER


def test_ports_of_its_new_owners_stay() -> None:
    memory = settled()
    memory.ports["s"] = frozenset({"theirs", "ours", "late"})
    memory.port_projects = dict.fromkeys(("theirs", "ours"), KEEPER.project_id)
    assert sweep(memory) == ["finish ports"]
    assert memory.ports["s"] == frozenset({"ours"})
    assert sweep(memory) == []


def test_purge_takes_the_ports_first() -> None:
    """Compute deletes those that it knows nothing of."""
    memory = settled()
    memory.ports["s"] = frozenset({"theirs"})
    memory.steps.clear()
    operator.purge_one(memory, POLICY, "s")
    assert memory.steps == ["release_ports", "write_record", "delete"]
    assert memory.deleted_ports == ["novas"]
