# SPDX-License-Identifier: Apache-2.0
"""`state-policy diff` and `state-policy replay`."""

import json
from pathlib import Path

import pytest

from state_policy.engine.analysis import diagram
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Age
from state_policy.engine.ports.reading import Caller
from state_policy.rules import load
from state_policy.wsgi.record import describe

OLD = '"server:delete": "not rule:snapshotting"\n'
NEW = (
    '"server:delete": "not rule:snapshotting and not (rule:building and '
    'server.state_age:<60m and role:member)"\n'
)


@pytest.fixture
def files(file):
    return file(OLD, "old.yaml"), file(NEW, "new.yaml")


def test_a_difference_in_words(files, run):
    code, lines, _ = run("diff", *files)
    assert code == 1
    assert lines[0] == (
        "delete, force_delete in building/*(but rule:snapshotting) with "
        "state_age <60m: allow -> deny 409 for member"
    )
    assert lines[-1].startswith("76 of ")
    assert lines[-1].endswith(" cells differ, in 2 operations")


def test_no_difference(files, run):
    code, (line,), _ = run("diff", files[0], files[0])
    assert code == 0
    assert line == f"no difference in {(82 + 2) * 516:,} cells"


def test_full_cells(files, run_json):
    code, rows = run_json("diff", *files)
    assert code == 1
    first = rows[0]
    assert first["operation"] == "delete"
    assert (first["old"], first["new"]) == ("allow", "deny 409")
    assert first["facts"] == {
        "caller:role:member": ["yes"],
        "server.state_age": ["<60m"],
    }
    assert len(first["states"]) == first["cells"] == 43 - 5
    assert ["building", None] in first["states"]


def test_few_lines(files, run):
    lines = run("diff", *files, "--lines", "1")[1]
    assert len(lines) <= 3
    file_lines = run("diff", *files, "-f", "csv")[1]
    assert file_lines[0] == "operation,old,new,caller,where,cells"


def test_the_rules_of_the_sweep_are_compared_too(file, run):
    old = file('"quarantine:purge": "quarantine.age:>=14d"', "o.yaml")
    new = file('"quarantine:purge": "quarantine.age:>=7d"', "n.yaml")
    code, lines, _ = run("diff", old, new)
    assert code == 1
    assert lines[0] == (
        "quarantine:purge in */* with quarantine.age >=7d and <14d: no -> yes"
    )


def test_rules_that_are_too_intricate_are_said_to_be(files, run, monkeypatch):
    monkeypatch.setattr(diagram, "LIMIT", 1)
    for arguments in (("diff", *files), ("check", files[1])):
        code, lines, err = run(*arguments)
        assert (code, lines) == (1, [])
        assert "too intricate" in err


def test_usage(files, run):
    assert run("diff", files[0])[0] == 2
    assert run("diff", *files, files[0])[0] == 2
    assert run("diff", "--defaults", "0.0", files[0])[0] == 2


def test_invalid_rules(file, files, run):
    code, _, err = run("diff", files[0], file('"server:stop": "x"'))
    assert code == 3
    assert "rules.yaml:1: " in err


# -- replay -------------------------------------------------------------------


def line(rules, operation, project, **facts):
    """Return a line as the filter writes it."""
    given = {f"server.{key}": value for key, value in facts.items()}
    credentials = {
        "project_id": project,
        "user_id": "u",
        "roles": ["member"],
        "target": {"project_id": project, "user_id": "u"},
    }
    decision = decide(rules, operation, {**given, "caller": credentials})
    caller = Caller(credentials, "req-1")
    return json.dumps(describe(decision, caller, "server-1"))


@pytest.fixture
def log(files, file):
    # The log of rules that read all the facts, as a shadow would.
    rules = load([files[1]])
    busy = {"vm_state": "active", "task_state": "image_uploading"}
    young = {"vm_state": "building", "task_state": "spawning"}
    idle = {"vm_state": "active", "task_state": None}
    lines = [
        line(rules, "delete", "p1", **busy, state_age=Age(60.0)),
        line(rules, "delete", "p1", **young, state_age=Age(60.0)),
        "2026-12-01 INFO state_policy.decisions "
        + line(rules, "delete", "p2", **young, state_age=Age(60.0)),
        line(rules, "delete", "p2", **young, state_age=Age(7200.0)),
        line(rules, "delete", "p2", **idle, state_age=Age(60.0)),
        "something else",
        '{"not": "ours"}',
        "{broken",
    ]
    return file("\n".join(lines) + "\n", "decisions.log")


def test_replaying_the_same_rules_changes_nothing(log, files, run):
    code, (last,), _ = run("replay", log, files[1])
    assert code == 0
    assert last == "0 of 5 decisions would be another; 3 lines skipped"


def test_what_would_have_changed_for_whom_how_often(log, files, run, run_json):
    code, lines, _ = run("replay", log, files[0])
    assert code == 1
    assert lines == [
        "delete: deny 409 -> allow: 2 times, projects p1 (1), p2 (1)",
        "2 of 5 decisions would be another; 3 lines skipped",
    ]
    code, (row,) = run_json("replay", log, files[0])
    assert row["count"] == 2
    assert row["projects"] == {"p1": 1, "p2": 1}


def test_facts_that_the_log_lacks_are_said(log, file, run):
    rules = file('"server:delete": "not server.locked:true"')
    code, lines, _ = run("replay", log, rules)
    assert code == 1
    assert all(
        ", undecided: the log lacks facts: " in found for found in lines[:-1]
    )


def test_no_such_log(files, run, tmp_path):
    code, _, err = run("replay", tmp_path / "no.log", files[0])
    assert code == 2
    assert err.endswith("no.log: cannot be read: no such file or directory\n")


def test_a_suffix_that_the_log_cannot_decide_is_said(log, file, run_json):
    rules = file('"server:delete:quarantine": "server.locked:true"')
    code, rows = run_json("replay", log, rules)
    assert code == 1
    assert {row["new"] for row in rows} == {"allow"}
    assert all(row["undecided"] for row in rows)


def test_what_the_same_rules_left_open_is_no_change(file, run):
    rules = file('"server:delete:quarantine": "server.locked:true"')
    log = file(line(load([rules]), "delete", "p1") + "\n", "decisions.log")
    assert run("replay", log, rules)[0] == 0


@pytest.mark.parametrize(
    "change",
    [
        {"roles": 5},
        {"operation": ["delete"]},
        {"facts": {"server.state_age": {"seconds": "x", "exact": True}}},
        {"facts": 5},
    ],
)
def test_a_line_that_no_filter_wrote_is_skipped(log, files, file, run, change):
    good = Path(log).read_text().splitlines()[0]
    bad = json.dumps({**json.loads(good), **change})
    deep = "{" + '"a": [' * 100_000
    changed = file("\n".join([good, bad, deep]), "changed.log")
    code, lines, _ = run("replay", changed, files[1])
    assert code == 0
    assert lines[-1] == "0 of 1 decisions would be another; 2 lines skipped"


def test_a_log_without_a_decision_is_an_error(files, file, run):
    code, _, err = run("replay", file("a\nb\n", "other.log"), files[1])
    assert code == 2
    assert "no decision found in" in err
    assert run("replay", file("", "new.log"), files[1])[0] == 0
