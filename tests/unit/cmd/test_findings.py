# SPDX-License-Identifier: Apache-2.0
"""`state-policy check`: findings, formats, acceptances, exit codes."""

import csv
import io

import pytest
import yaml

STUCK = '"class:destroy": "not rule:building"\n'
NOTE = '"server:stop": "not rule:snapshotting"\n'


def test_nothing_found(file, run):
    code, lines, _ = run("check", file('"server:stop": "role:admin"'))
    assert code == 0
    assert len(lines) == 1
    assert lines[0].startswith("0 errors, 0 warnings, 0 notes, 0 accepted; ")


def test_the_cells_are_counted(file, run):
    _, (line,), _ = run("check", file("{}"))
    assert line.endswith(f"; {82 * 516:,} cells checked")


def test_a_finding_is_one(file, run):
    path = file(STUCK)
    code, lines, _ = run("check", path)
    assert code == 1
    assert lines[0].startswith(f"{path}:1: error SP004: `class:destroy` ")
    assert lines[-1].startswith("1 error, ")


def test_notes_count_when_strict(file, run):
    path = file(NOTE)
    assert run("check", path)[0] == 0
    assert run("check", "--strict", path)[0] == 1


def test_an_accepted_finding_is_shown_to_machines(file, run, run_json):
    path = file(
        "# state-policy: accept SP004 class:destroy because a museum\n" + STUCK
    )
    code, lines, _ = run("check", path)
    assert code == 0
    assert len(lines) == 1
    assert " 1 accepted; " in lines[0]
    code, (row,) = run_json("check", path)
    assert (code, row["code"], row["accepted"]) == (0, "SP004", "a museum")


def test_a_stale_acceptance_is_found(file, run):
    path = file("# state-policy: accept SP004 class:destroy because x\n{}")
    code, lines, _ = run("check", path)
    assert code == 1
    assert lines[0].startswith(f"{path}:1: warning SP011: `class:destroy` ")


def test_formats(file, run, run_json):
    path = file(STUCK)
    code, rows = run_json("check", path)
    assert code == 1
    assert rows == yaml.safe_load(
        "\n".join(run("check", path, "-f", "yaml")[1])
    )
    (row,) = rows
    assert row["code"] == "SP004"
    assert row["severity"] == "error"
    assert row["place"] == f"{path}:1"
    text = "\n".join(run("check", path, "-f", "csv")[1])
    (found,) = csv.DictReader(io.StringIO(text))
    assert found["message"] == row["message"]
    table = run("check", path, "-f", "table")[1]
    assert any("SP004" in line for line in table)


def test_invalid_rules_have_rows_too(file, run_json):
    path = file('"server:stop": "x"')
    code, (row,) = run_json("check", path)
    assert code == 3
    assert (row["severity"], row["code"]) == ("invalid", None)
    assert row["place"] == f"{path}:1"


def test_what_the_filter_does_not_carry_out_yet(file, run_json):
    path = file(
        '"server:stop": "not rule:snapshotting"\n'
        '"server:stop:wait": "rule:snapshotting"\n'
    )
    code, rows = run_json("check", "--runtime", path)
    assert code == 1
    assert [(row["code"], row["rule"]) for row in rows] == [
        ("SP014", "server:stop:wait")
    ]
    assert run_json("check", path) == (0, [])


@pytest.mark.parametrize("name", ["preset:nosuch", "defaults:nosuch"])
def test_unknown_presets_are_usage(run, name):
    code, _, err = run("check", name)
    assert code == 2
    assert "nosuch" in err
