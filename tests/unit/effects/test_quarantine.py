# SPDX-License-Identifier: Apache-2.0
"""What the client hears of a move, whatever becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from state_policy.drivers.memory.answers import Answers
from state_policy.effects.quarantine import Quarantine
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.effects import Asked, Outcome, Parts
from state_policy.engine.ports.reading import Location
from state_policy.quarantine.record import load
from tests.unit.quarantine.memory import (
    KEEPER,
    OWNER,
    Memory,
    Policy,
    StoreError,
)


@dataclass(frozen=True)
class Settings:
    """The settings that the effect looks at."""

    quarantine: Policy = field(default_factory=Policy)
    retry_after: int = 30


def apply(
    memory: Memory,
    operation: str = "delete",
    facts: dict[str, Any] | None = None,
    policy: Policy | None = None,
    **location: Any,
) -> Outcome:
    """Have the owner's request carried out."""
    parts = Parts(
        reader=None,  # type: ignore[arg-type]  # not looked at
        answers=Answers(),
        mover=memory,
        rules=lambda: None,  # type: ignore[arg-type,return-value]
        settings=Settings(policy or Policy()),
    )
    asked = Asked(
        OPERATIONS[operation],
        {},
        memory.caller_for(OWNER, "req-1"),
        Location("s", OWNER.project_id, **location),
    )
    decision = Decision(
        operation,
        Verdict.QUARANTINE,
        rule=f"server:{operation}:quarantine",
        id="decision",
        revision="abc",
    )
    return Quarantine(parts).apply(asked, decision, facts or {})


def status(outcome: Outcome) -> tuple[str, dict[str, str], bytes]:
    """Return the status, headers and body of a response."""
    assert outcome.response is not None
    found: dict[str, Any] = {}

    def start(code: str, headers: list[tuple[str, str]]) -> None:
        found.update(code=code, headers=dict(headers))

    body = b"".join(outcome.response({}, start))  # type: ignore[arg-type]
    return found["code"], found["headers"], body


def world(**more: Any) -> Memory:
    """Return a cloud with one server of the owner's."""
    memory = Memory()
    memory.add("s", **more)
    return memory


@pytest.mark.parametrize(
    "operation,code",
    [("delete", "204 No Content"), ("force_delete", "202 Accepted")],
)
def test_moved(operation: str, code: str) -> None:
    memory = world()
    outcome = apply(memory, operation)
    assert status(outcome)[0] == code
    (record,) = (load(text) for _, text in memory.records)
    assert record.operation == operation
    assert record.decision == "decision"
    assert record.revision == "abc"
    assert record.request_id == "req-1"
    assert record.requested_by is None


def test_excluded_goes_on() -> None:
    memory = world(locked_by="owner")
    assert apply(memory) == Outcome(None, "it is locked")
    assert memory.steps == []


def test_only_a_build_request() -> None:
    memory = world()
    outcome = apply(memory, build_request=True)
    assert outcome == Outcome(None, "it is only a build request")
    assert memory.steps == []


def test_decided_on_another_state() -> None:
    memory = world()
    outcome = apply(memory, facts={"server.task_state": "spawning"})
    assert outcome == Outcome(None, "its state has changed")
    assert memory.steps == []


def test_full_and_denied() -> None:
    memory = world()
    memory.full = frozenset({KEEPER.project_id})
    outcome = apply(memory, "force_delete", policy=Policy(on_full="deny"))
    code, headers, body = status(outcome)
    assert code == "409 Conflict"
    assert headers["Retry-After"] == "30"
    assert b"Cannot 'forceDelete' instance s" in body
    assert KEEPER.project_id.encode() not in body
    assert memory.steps == []
    assert apply(memory) == Outcome(None, "full")


def test_a_failure_before_the_row_goes_on() -> None:
    memory = world()

    def fail(*args: Any) -> int:
        raise StoreError("no database")

    memory.moved_within = fail  # type: ignore[method-assign]
    outcome = apply(memory)
    assert outcome == Outcome(None, "moving failed: StoreError")
    assert memory.steps == []


def test_ports_are_kept_where_that_is_wanted() -> None:
    memory = world()
    memory.ports["s"] = frozenset({"port"})
    apply(memory, policy=Policy(on_ports="keep"))
    assert "release_ports" not in memory.steps
    assert memory.ports["s"] == {"port"}


def test_refuses_what_it_cannot_work_with() -> None:
    parts = Parts(
        reader=None,  # type: ignore[arg-type]
        answers=Answers(),
        mover=None,
        rules=lambda: None,  # type: ignore[arg-type,return-value]
        settings=Settings(),
    )
    with pytest.raises(ValueError, match="cannot move servers"):
        Quarantine(parts)
    off = Settings(Policy(enabled=False))
    with pytest.raises(ValueError, match="enabled is false"):
        Quarantine(
            Parts(parts.reader, parts.answers, Memory(), parts.rules, off)
        )
