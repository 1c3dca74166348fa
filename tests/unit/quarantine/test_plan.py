# SPDX-License-Identifier: Apache-2.0
"""What is due for a server, by its newest record and what the stores say."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from state_policy.engine.ports.moving import Server
from state_policy.quarantine import plan as plans
from state_policy.quarantine.plan import Step
from state_policy.quarantine.record import (
    LIMIT,
    Kind,
    Record,
    RecordError,
    dump,
    load,
)
from tests.unit.quarantine.memory import KEEPER, OWNER, START, Policy

POLICY = Policy()
RECORD = Record(Kind.CONCEAL, "s", OWNER, KEEPER, START, START)
CONCEALED = Server("s", KEEPER, OWNER, hidden=True, idle=3600, host_up=True)
SETTLED = Server("s", KEEPER, KEEPER, idle=3600, host_up=True)


def step(server: Server, record: Record | None, after: float = 100) -> Step:
    now = START + timedelta(seconds=after)
    return plans.plan(server, record, POLICY, now).step


@pytest.mark.parametrize(
    "changes,expected",
    [
        ({}, Step.SETTLE),
        ({"task_state": "spawning"}, Step.FINISH),
        ({"running": frozenset({"attach_volume"})}, Step.FINISH),
        ({"idle": 59.0}, Step.FINISH),
        ({"idle": None}, Step.SETTLE),
        ({"task_state": "deleting", "host_up": False}, Step.SETTLE),
        (
            {"task_state": "deleting", "host_up": False, "idle": 1.0},
            Step.FINISH,
        ),
        ({"host_up": None, "task_state": None}, Step.SETTLE),
        ({"deleted": True}, Step.GIVE_BACK),
    ],
)
def test_concealed(changes: dict[str, Any], expected: Step) -> None:
    assert step(replace(CONCEALED, **changes), RECORD) is expected


def test_deadline() -> None:
    busy = replace(CONCEALED, task_state="spawning", idle=1.0)
    assert step(busy, RECORD, POLICY.deadline - 1) is Step.FINISH
    assert step(busy, RECORD, POLICY.deadline) is Step.SETTLE
    assert plans.stranded(replace(busy, running=frozenset({"build"}))) == (
        "build",
        "spawning",
    )


@pytest.mark.parametrize(
    "server,kind,expected",
    [
        (SETTLED, Kind.SETTLE, Step.FINISH),
        (replace(SETTLED, deleted=True), Kind.SETTLE, Step.NOTHING),
        (replace(SETTLED, owner=OWNER), Kind.SETTLE, Step.ODD),
        (SETTLED, Kind.RELEASE, Step.RELEASE),
        (CONCEALED, Kind.RELEASE, Step.RELEASE),
        (Server("s", OWNER, OWNER), Kind.RELEASE, Step.NOTHING),
        (
            replace(CONCEALED, hidden=False, deleted=True),
            Kind.CONCEAL,
            Step.GIVE_BACK,
        ),
        (
            Server("s", OWNER, OWNER, deleted=True),
            Kind.CONCEAL,
            Step.NOTHING,
        ),
    ],
)
def test_others(server: Server, kind: Kind, expected: Step) -> None:
    assert step(server, replace(RECORD, kind=kind)) is expected


def test_no_record() -> None:
    assert step(SETTLED, None) is Step.NOTHING
    assert step(replace(SETTLED, owner=OWNER), None) is Step.ODD
    assert step(CONCEALED, None) is Step.ODD


def test_retention_is_finite() -> None:
    record = replace(RECORD, kind=Kind.SETTLE)
    assert step(SETTLED, record, POLICY.retention - 1) is Step.FINISH
    assert step(SETTLED, record, POLICY.retention) is Step.PURGE


@pytest.mark.parametrize(
    "attempts,vm_state,task,after,expected",
    [
        (1, "active", None, 1, Step.PURGE),  # died before the delete
        (1, "active", "deleting", 1, Step.NOTHING),
        (1, "active", "deleting", 600, Step.PURGE),
        (3, "active", "deleting", 1, Step.NOTHING),
        (3, "active", "deleting", 600, Step.STUCK),
        # compute has saved its last state and deletes the row next
        (1, "deleted", None, 1, Step.NOTHING),
        (1, "deleted", None, 599, Step.NOTHING),
        (1, "deleted", None, 600, Step.PURGE),
        (3, "deleted", None, 600, Step.STUCK),
    ],
)
def test_purge(
    attempts: int,
    vm_state: str,
    task: str | None,
    after: float,
    expected: Step,
) -> None:
    record = replace(RECORD, kind=Kind.PURGE, attempts=attempts)
    server = replace(SETTLED, vm_state=vm_state, task_state=task)
    assert step(server, record, after) is expected


@pytest.mark.parametrize(
    "record,server,expected",
    [
        ({"vm_state": "building"}, {"vm_state": "active"}, True),
        ({"task_state": "rebooting"}, {"vm_state": "active"}, True),
        ({"running": ("attach",)}, {"vm_state": "stopped"}, True),
        # nothing was under way
        ({"vm_state": "active"}, {"vm_state": "active"}, False),
        # it did not end well, or has not ended
        ({"vm_state": "building"}, {"vm_state": "error"}, False),
        ({"vm_state": "building"}, {"vm_state": "building"}, False),
        (
            {"vm_state": "building"},
            {"vm_state": "active", "task_state": "x"},
            False,
        ),
        (
            {"vm_state": "building", "stranded": ("build",)},
            {"vm_state": "active"},
            False,
        ),
        (
            {"vm_state": "building", "kind": Kind.CONCEAL},
            {"vm_state": "active"},
            False,
        ),
    ],
)
def test_completed(
    record: dict[str, Any], server: dict[str, Any], expected: bool
) -> None:
    found = replace(RECORD, **{"kind": Kind.SETTLE, **record})
    assert plans.completed(replace(SETTLED, **server), found) is expected


def test_record_is_read_back() -> None:
    full = replace(
        RECORD,
        requested_by=KEEPER,
        running=("a", "b"),
        ports=CONCEALED.ports,
        group="g",
        attempts=2,
    )
    assert load(dump(full)) == full


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", '{"version": 2}', '{"version": 1}', "Traceback"],
)
def test_no_record_in_a_text(text: str) -> None:
    with pytest.raises(RecordError):
        load(text)


def test_record_is_bounded() -> None:
    huge = replace(RECORD, volumes=("v" * 36,) * (LIMIT // 36))
    with pytest.raises(RecordError):
        dump(huge)
