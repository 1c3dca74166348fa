# SPDX-License-Identifier: Apache-2.0
"""Deletes that are asked again, and those that are not; rules of the sweep."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from state_policy import rules
from state_policy.engine.facts import Facts
from state_policy.engine.ports.moving import Owner, Pending, PendingDelete
from state_policy.engine.ports.reading import Caller, Location, UnreadError
from state_policy.engine.ruleset import RuleSet
from state_policy.quarantine import operator
from state_policy.quarantine.conceal import conceal
from state_policy.quarantine.record import load
from state_policy.quarantine.sweep import Sweep
from tests.unit.quarantine.memory import KEEPER, OWNER, START, Memory, Policy
from tests.unit.quarantine.test_deaths import WISH


class Reader:
    """Knows the facts it is given and lets everybody, or nobody, do all.

    :ivar seeing: False: no server can be looked up
    """

    seeing = True

    def __init__(self, facts: Facts, allowed: bool | None = True) -> None:
        self.facts = facts
        self.allowed = allowed
        self.asked: list[tuple[str | None, str]] = []

    def locate(self, server_id: str) -> Location | None:
        if not self.seeing:
            raise UnreadError("no")
        return Location(server_id, OWNER.project_id)

    def may(
        self, caller: Caller, location: Location, gate: str
    ) -> bool | None:
        self.asked.append((caller.project_id, gate))
        return self.allowed

    def read(
        self, caller: Caller, location: Location, keys: Set[str]
    ) -> Facts:
        return {k: v for k, v in self.facts.items() if k in keys}


DELETING = {"server.vm_state": "active", "server.task_state": "deleting"}
PENDING = PendingDelete("s", OWNER, OWNER, "delete", "req-9", START)


def load_rules(directory: Path, text: str) -> RuleSet:
    file = directory / "policy.yaml"
    file.write_text(text)
    return rules.load([file])


def swept(memory: Memory, found: RuleSet, reader: Any) -> list[str]:
    report = Sweep(memory, Policy(), found, reader).run()
    assert [done for done in report.done if done.error] == []
    return [done.step for done in report.done]


@pytest.fixture
def quarantine(tmp_path: Path) -> RuleSet:
    return load_rules(
        tmp_path, '"server:delete:quarantine": "rule:deleting"\n'
    )


def pending(found: PendingDelete, **more: Any) -> Memory:
    memory = Memory(pending=(found,))
    memory.add("s", task_state="deleting", **more)
    return memory


def test_asked_again(quarantine: RuleSet) -> None:
    memory, reader = pending(PENDING), Reader(DELETING)
    assert swept(memory, quarantine, reader) == ["conceal"]
    (record,) = (load(text) for _, text in memory.records)
    assert record.request_id == "req-9"
    assert reader.asked == [
        (OWNER.project_id, "os_compute_api:servers:delete")
    ]


@pytest.mark.parametrize(
    "found",
    [
        replace(PENDING, sender=Owner("admins", "admin")),
        replace(PENDING, locked=True),
    ],
)
def test_not_asked_again(quarantine: RuleSet, found: PendingDelete) -> None:
    memory, reader = pending(found), Reader(DELETING)
    assert swept(memory, quarantine, reader) == []
    assert reader.asked == []
    assert memory.steps == []


def test_no_more_rights_than_a_member(quarantine: RuleSet) -> None:
    memory = pending(PENDING)
    assert swept(memory, quarantine, Reader(DELETING, allowed=False)) == []
    assert memory.steps == []


def test_what_cannot_be_read_is_told(quarantine: RuleSet) -> None:
    """Neither done nor taken for a no: somebody has to hear of it."""
    unseen, unjudged = Reader(DELETING), Reader(DELETING, allowed=None)
    unseen.seeing = False
    for reader in (unseen, unjudged):
        memory = pending(PENDING)
        report = Sweep(memory, Policy(), quarantine, reader).run()
        assert report.failed
        (done,) = report.done
        assert done.error is not None and "UnreadError" in done.error
        assert memory.steps == []


def test_undecided_does_not_act(quarantine: RuleSet) -> None:
    memory = pending(PENDING)
    assert swept(memory, quarantine, Reader({})) == []
    assert memory.steps == []


def test_excluded_is_left(quarantine: RuleSet) -> None:
    memory = pending(PENDING, volumes=("v",))
    assert swept(memory, quarantine, Reader(DELETING)) == []
    assert memory.steps == []


@pytest.mark.parametrize("how", [{"dry_run": True}, {"enforced": False}])
@pytest.mark.parametrize(
    ("store", "row", "reason"),
    [
        ({}, {"volumes": ("v",)}, "it has volumes and its host is alive"),
        ({}, {"locked_by": "owner"}, "it is locked"),
        ({"full": frozenset({KEEPER.project_id})}, {}, "full"),
        (
            {"moved": 100},
            {},
            "100 servers came into quarantine within an hour",
        ),
    ],
)
def test_what_would_not_be_moved_is_not_announced(
    quarantine: RuleSet,
    how: dict[str, bool],
    store: dict[str, Any],
    row: dict[str, Any],
    reason: str,
) -> None:
    """What is only said has all the reasons of what is done."""
    memory = pending(PENDING, **row)
    for name, value in store.items():
        setattr(memory, name, value)
    reader = Reader(DELETING)
    (done,) = Sweep(memory, Policy(), quarantine, reader, **how).run().done
    assert (done.step, done.acted, done.error) == ("leave", False, None)
    assert done.why == f"its delete has not ended, but {reason}"
    assert swept(memory, quarantine, reader) == []
    assert memory.steps == []


def test_what_was_released_is_left(quarantine: RuleSet) -> None:
    """Until it is deleted anew: its old delete may be stuck still."""
    memory, reader = pending(PENDING), Reader(DELETING)
    assert swept(memory, quarantine, reader) == ["conceal"]
    memory.pass_time(60)
    operator.release_one(memory, Policy(), "s")
    assert swept(memory, quarantine, reader) == []
    (done,) = (
        Sweep(memory, Policy(), quarantine, reader, dry_run=True).run().done
    )
    assert done.why == "its delete has not ended, but it was released since"
    memory.pass_time(60)
    memory.pending = (replace(PENDING, sent=memory.time),)
    memory.pass_time(60)
    assert swept(memory, quarantine, reader) == ["conceal"]


def test_a_delete_in_the_second_of_the_release(quarantine: RuleSet) -> None:
    """A database may keep no more than the second."""
    memory, reader = pending(PENDING), Reader(DELETING)
    assert swept(memory, quarantine, reader) == ["conceal"]
    memory.pass_time(60)
    operator.release_one(memory, Policy(), "s")
    memory.pending = (replace(PENDING, sent=memory.time),)
    assert swept(memory, quarantine, reader) == ["conceal"]


def test_an_unreadable_record_is_no_release(quarantine: RuleSet) -> None:
    """Of a server that is shown in its owner's project."""
    memory, reader = pending(PENDING), Reader(DELETING)
    memory.records.append(("s", "no record"))
    assert swept(memory, quarantine, reader) == ["conceal"]
    assert memory.row["s"].hidden


def settled(**more: Any) -> Memory:
    memory = Memory()
    memory.add("s", **more)
    conceal(memory, Policy(), "s", WISH)
    Sweep(memory, Policy()).run()
    memory.steps.clear()
    return memory


@pytest.mark.parametrize(
    "text,after,expected",
    [
        ('"quarantine:purge": "quarantine.age:>=1d"', 86399, []),
        ('"quarantine:purge": "quarantine.age:>=1d"', 86400, ["purge"]),
        ('"quarantine:release": "quarantine.age:>=1m"', 60, ["release"]),
        (
            '"quarantine:release": "quarantine.age:>=1m"\n'
            '"quarantine:purge": "quarantine.age:>=1m"',
            60,
            ["release"],
        ),
        ('"quarantine:purge": "quarantine.completed:true"', 60, []),
        ('"quarantine:purge": "server.vm_state:error"', 60, []),
    ],
)
def test_rules_of_the_sweep(
    tmp_path: Path, text: str, after: float, expected: list[str]
) -> None:
    memory = settled()
    memory.pass_time(after)
    found = load_rules(tmp_path, text)
    assert swept(memory, found, Reader({})) == expected


def test_completed_after_all(tmp_path: Path) -> None:
    memory = Memory()
    memory.add("s", vm_state="building", task_state="spawning")
    conceal(memory, Policy(), "s", WISH)
    memory.set("s", vm_state="active", task_state=None)
    found = load_rules(
        tmp_path, '"quarantine:purge": "quarantine.completed:true"'
    )
    assert swept(memory, found, Reader({})) == ["settle"]
    assert swept(memory, found, Reader({})) == ["purge"]
    assert memory.row["s"].deleted


def test_facts_of_the_server_are_read(tmp_path: Path) -> None:
    memory = settled()
    found = load_rules(tmp_path, '"quarantine:purge": "server.vm_state:error"')
    facts = {"server.vm_state": "error", "server.task_state": None}
    assert swept(memory, found, Reader(facts)) == ["purge"]


def test_facts_that_cannot_be_read_do_not_act(tmp_path: Path) -> None:
    memory = settled()
    found = load_rules(tmp_path, '"quarantine:purge": "server.vm_state:error"')
    reader = Reader({"server.vm_state": "error", "server.task_state": None})
    reader.seeing = False
    assert swept(memory, found, reader) == []


def test_what_cannot_be_seen_is_told(quarantine: RuleSet) -> None:
    report = Sweep(Memory(unseen=("cell2",)), Policy()).run()
    assert report.unseen == ("cell2",)
    assert report.failed
    blind = Blind(unseen=("cell2",))
    report = Sweep(blind, Policy(), quarantine, Reader(DELETING)).run()
    assert report.unseen == ("cell1", "cell2")
    assert report.failed


class Blind(Memory):
    """A cell has more to answer when deletes are asked for, and does not."""

    def pending_deletes(
        self, projects: Sequence[str], older_than: float
    ) -> Pending:
        return Pending((), ("cell1", "cell2"))
