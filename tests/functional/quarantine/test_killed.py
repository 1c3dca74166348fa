# SPDX-License-Identifier: Apache-2.0
"""SIGKILL before every step, and in the middle of every transaction.

The databases and all that is written to them are Nova's. On MariaDB, where
there is one or one can be installed, twenty processes conceal at once too,
and sweeps run beside them; else on SQLite, which takes one writer at a time.
Two processes that meet in a step are tried on both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.functional.quarantine.processes import mariadb

ROOT = Path(__file__).parents[3]
NAMES = ("api", "cell0", "cell1")
OWNERS = "owner-project"
KEEPERS = "quarantine-project"

Found = dict[str, Any]


def play(directory: Path, many: int, urls: Sequence[str]) -> Found:
    """Run the processes and return what they found."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.functional.quarantine.processes.killed",
            str(directory),
            str(many),
            *urls,
        ],
        cwd=ROOT,
        env={**os.environ, "OS_NOVA_DISABLE_EVENTLET_PATCHING": "true"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: Found = json.loads(done.stdout)
    return found


def settled(state: Found) -> None:
    """Every store says that it is the quarantine project's."""
    assert (state["row"], state["mapping"], state["spec"]) == 3 * (KEEPERS,)
    assert state["consumer"] == KEEPERS
    assert not state["hidden"]
    assert state["locked_by"] == "admin"
    assert not state["bound"]
    assert not state["member"]


def owners(state: Found) -> None:
    """Every store says that it is its owner's."""
    assert (state["row"], state["mapping"], state["spec"]) == 3 * (OWNERS,)
    assert state["consumer"] == OWNERS
    assert not state["hidden"]
    assert state["locked_by"] is None
    assert state["member"]


def deleted(state: Found) -> None:
    """It is gone."""
    assert state["deleted"]
    assert state["consumer"] is None


#: Act: how it ends, its steps, and how it ends where nothing was written.
ENDS = {
    "conceal": (settled, 7, owners),
    "settle": (settled, 2, settled),
    "release": (owners, 6, settled),
    "purge": (deleted, 4, settled),
}


def judge_deaths(deaths: list[Found]) -> None:
    """Whatever it died at, sweeps ended it."""
    for act, (end, steps, unwritten) in ENDS.items():
        cases = [case for case in deaths if case["act"] == act]
        assert [case["number"] for case in cases] == list(range(steps + 1))
        assert [case["ended"] for case in cases[:-1]] == ["killed"] * steps
        for case in cases:
            wrote = len(case["died"]["records"]) > case["earlier"]
            errors = [e for s in case["sweeps"] for _, e in s if e]
            assert errors == [], case
            (end if wrote else unwritten)(case["state"])
            assert case["sweeps"][-1] == [], case


def judge_races(races: Found) -> None:
    """One result and one record, however many do it at once."""
    assert set(races["answers"]) == {"moved"}
    assert races["concealed"]["records"].count("conceal") == 1
    settled(races["settled"])
    assert races["settled"]["records"] == ["conceal", "settle"]
    errors = [error for swept in races["swept"] for _, error in swept if error]
    assert errors == []
    assert races["ended"] == "killed"
    assert races["half"]["records"] == ["conceal", "settle", "release"]
    assert races["half"]["consumer"] == OWNERS
    assert races["half"]["mapping"] == races["half"]["row"] == KEEPERS
    assert ["release", None] in [
        done for swept in races["following"] for done in swept
    ]
    owners(races["released"])
    assert races["released"]["records"] == ["conceal", "settle", "release"]


#: Meeting: what the two answer, in any order, the records right after, and how
#: it ends.
MEETINGS: dict[str, tuple[list[Any], list[str], Callable[[Found], None]]] = {
    "two conceals": (["moved", "moved"], ["conceal"], settled),
    "two sweeps settle": (
        [[], [["settle", None]]],
        ["conceal", "settle"],
        settled,
    ),
    "two sweeps end a release": (
        2 * [[["release", None]]],
        ["conceal", "settle", "release"],
        owners,
    ),
    "two sweeps purge": (
        [[], [["purge", None]]],
        ["conceal", "settle", "purge"],
        deleted,
    ),
}


#: SQLite waits for another writer, but not in a transaction that has read
#: before it writes: then it refuses one of the two, and the next sweep does
#: what that one would have done.
LOCKED = "database is locked"


def judge_meetings(meetings: Found, refusing: int) -> None:
    """Two that overlap in a step do what one does.

    :param refusing: how many of the two the database may refuse
    """
    beside = meetings.pop("a sweep beside a conceal")
    concealing, sweeping = beside["answers"]
    assert concealing == {"answer": "moved", "met": True}
    assert sweeping["met"]
    assert ["settle", None] in sweeping["answer"]
    assert beside["died"]["records"] == ["conceal", "settle"]
    settled(beside["state"])
    assert set(meetings) == set(MEETINGS)
    for name, (answers, records, end) in MEETINGS.items():
        case = meetings[name]
        assert all(one["met"] for one in case["answers"]), (name, case)
        found = [one["answer"] for one in case["answers"]]
        refused = [answer for answer in found if LOCKED in str(answer)]
        assert len(refused) <= refusing, (name, refused)
        left = list(answers)
        for answer in found:
            if answer not in refused:
                left.remove(answer)
        assert len(left) == len(refused), (name, found)
        assert case["died"]["records"] == records, name
        errors = [e for swept in case["sweeps"] for _, e in swept if e]
        assert errors == [], name
        end(case["state"])


def judge(found: Found, refusing: int = 0) -> None:
    """Judge what is tried on every database."""
    judge_meetings(found["meetings"], refusing)
    judge_deaths(found["deaths"])


def test_killed(tmp_path: Path) -> None:
    """The next sweep ends what a dead process has begun."""
    try:
        server = mariadb.MariaDB()
    except mariadb.NotThereError as error:
        urls = [f"sqlite:///{tmp_path}/{name}.sqlite" for name in NAMES]
        judge(play(tmp_path, 0, urls), refusing=1)
        pytest.skip(f"passed on SQLite, NOT tested on MariaDB: {error}")
    try:
        found = play(tmp_path, 20, server.urls(*NAMES))
    finally:
        server.stop()
    judge(found)
    judge_races(found["races"])
