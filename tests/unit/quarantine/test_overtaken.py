# SPDX-License-Identifier: Apache-2.0
"""A sweep that looked at a server just before somebody else went on with it.

Whatever it meant to do, what was done meanwhile stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from state_policy.engine.ports.moving import MovingError, Port, Server
from state_policy.quarantine import operator, purge
from state_policy.quarantine.record import of
from state_policy.quarantine.sweep import Sweep
from tests.unit.quarantine.memory import KEEPER, OWNER, Memory
from tests.unit.quarantine.test_deaths import (
    POLICY,
    is_owners,
    settle,
    sweep,
    world,
)


def release(memory: Memory) -> None:
    """Give the server back, as an operator does."""
    operator.release_one(memory, POLICY, "s")


def overtake(memory: Memory, name: str, act: Callable[[Memory], None]) -> None:
    """Have something happen when a method is called next, after its work."""
    method = getattr(memory, name)

    def overtaken(*args: Any) -> Any:
        setattr(memory, name, method)
        found = method(*args)
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
    with pytest.raises(MovingError):
        purge.purge(memory, seen, record)
    assert not memory.row["s"].deleted


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


def test_purge_takes_the_ports_first() -> None:
    """Compute deletes those that it knows nothing of."""
    memory = settled()
    memory.ports["s"] = frozenset({"theirs"})
    memory.steps.clear()
    operator.purge_one(memory, POLICY, "s")
    assert memory.steps == ["release_ports", "write_record", "delete"]
    assert memory.deleted_ports == ["novas"]
