# SPDX-License-Identifier: Apache-2.0
"""Servers that are not moved, each with its reason, and nothing done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from state_policy.quarantine import exclusions
from state_policy.quarantine.conceal import Result, conceal
from tests.unit.quarantine.memory import KEEPER, OWNER, Memory, Policy
from tests.unit.quarantine.test_deaths import WISH

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # reason: (of the server, of the caller, of the policy)
    "it is deleted": ({"deleted": True}, {}, {}),
    "it is in quarantine already": ({"owner": KEEPER}, {}, {}),
    "its row is hidden by compute itself": ({"hidden": True}, {}, {}),
    "the request is a service's": ({}, {"roles": ["service", "admin"]}, {}),
    "its project is excluded": (
        {},
        {},
        {"excluded_projects": (OWNER.project_id,)},
    ),
    "it is locked": ({"locked_by": "owner"}, {}, {}),
    "it is protected from termination": ({"protected": True}, {}, {}),
    "it is soft-deleted": ({"vm_state": "soft-delete"}, {}, {}),
    "it is resized": ({"vm_state": "resized"}, {}, {}),
    "it is moving to another host": ({"task_state": "resize_prep"}, {}, {}),
    "its ports are being made": ({"task_state": "networking"}, {}, {}),
    "it has volumes and its host is alive": ({"volumes": ("v",)}, {}, {}),
}


def test_every_exclusion_is_tried() -> None:
    assert set(CASES) == {reason for reason, _ in exclusions.CHECKS}


@pytest.mark.parametrize("reason", CASES)
def test_excluded(reason: str) -> None:
    of_server, of_caller, of_policy = CASES[reason]
    memory = Memory()
    memory.add("s", **{k: v for k, v in of_server.items() if k != "owner"})
    if "owner" in of_server:
        memory.set("s", owner=of_server["owner"])
    wish = replace(WISH, credentials={**WISH.credentials, **of_caller})
    answer = conceal(memory, Policy(**of_policy), "s", wish)
    assert (answer.result, answer.reason) == (Result.EXCLUDED, reason)
    assert memory.steps == []


@pytest.mark.parametrize(
    "of_server,of_caller,of_policy",
    [
        ({"locked_by": "owner"}, {"is_admin": True}, {}),
        ({"volumes": ("v",)}, {}, {"on_volumes": "keep"}),
        ({"volumes": ("v",), "host_up": False}, {}, {}),
        ({"task_state": "spawning", "vm_state": "building"}, {}, {}),
        ({"vm_state": "error", "host": None, "host_up": None}, {}, {}),
    ],
)
def test_not_excluded(
    of_server: dict[str, Any],
    of_caller: dict[str, Any],
    of_policy: dict[str, Any],
) -> None:
    memory = Memory()
    memory.add("s", **of_server)
    wish = replace(WISH, credentials={**WISH.credentials, **of_caller})
    answer = conceal(memory, Policy(**of_policy), "s", wish)
    assert answer.result is Result.MOVED


@pytest.mark.parametrize(
    "seen,result",
    [
        ({}, Result.MOVED),
        ({"vm_state": "active", "task_state": None}, Result.MOVED),
        ({"task_state": "spawning"}, Result.EXCLUDED),
        ({"vm_state": "building"}, Result.EXCLUDED),
    ],
)
def test_the_state_is_the_one_that_was_decided_on(
    seen: dict[str, str | None], result: Result
) -> None:
    memory = Memory()
    memory.add("s")
    answer = conceal(memory, Policy(), "s", replace(WISH, seen=seen))
    assert answer.result is result


def test_too_many_in_an_hour() -> None:
    memory = Memory(moved=3)
    memory.add("s")
    answer = conceal(memory, Policy(max_per_hour=3), "s", WISH)
    assert answer.result is Result.EXCLUDED
    assert answer.reason == "3 servers came into quarantine within an hour"
    assert conceal(memory, Policy(max_per_hour=0), "s", WISH).result is (
        Result.MOVED
    )


def test_no_sweep_is_running() -> None:
    memory = Memory(late=True)
    memory.add("s")
    answer = conceal(memory, Policy(), "s", WISH)
    assert answer.result is Result.EXCLUDED
    assert "no sweep is running" in str(answer.reason)


def test_full() -> None:
    memory = Memory(full=frozenset({KEEPER.project_id}))
    memory.add("s")
    answer = conceal(memory, Policy(), "s", WISH)
    assert (answer.result, answer.reason) == (Result.FULL, "full")
    assert memory.steps == []
    several = Policy(projects=(KEEPER.project_id, "second"), on_full="next")
    assert conceal(memory, several, "s", WISH).result is Result.MOVED
    assert memory.mapping["s"].project_id == "second"


def test_unknown_and_unreadable() -> None:
    memory = Memory()
    assert conceal(memory, Policy(), "s", WISH).reason == "it is unknown"
