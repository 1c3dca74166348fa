# SPDX-License-Identifier: Apache-2.0
"""The rule sets that come with the project, and their tests."""

from pathlib import Path

import pytest
import yaml

from state_policy.cmd import rulefiles
from state_policy.rules import defaults

ETC = Path(__file__).parents[3] / "etc/state_policy"
NAMES = {
    "inert",
    "users-can-always-delete",
    "quarantine-stuck-builds",
    "protect-snapshots",
    "protect-by-tag",
    "host-down",
    "one-operation-at-a-time",
    "strict-2011",
}


def test_all_are_there():
    assert set(rulefiles.shipped(rulefiles.PRESET)) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES - {"strict-2011"}))
def test_check_is_clean(run, name):
    code, lines, _ = run(
        "check", "--strict", "--runtime", f"{rulefiles.PRESET}{name}"
    )
    assert (code, len(lines)) == (0, 1), lines


def test_check_names_what_was_wrong_in_2011(run_json):
    code, (row,) = run_json("check", "preset:strict-2011")
    assert (code, row["code"], row["rule"]) == (1, "SP004", "server:delete")
    assert "building/*" in row["message"]


@pytest.mark.parametrize("name", ["design", "public-cases"])
def test_check_is_clean_on_the_examples(run, name):
    path = ETC / "examples" / f"{name}.yaml"
    code, lines, _ = run("check", "--strict", path)
    assert (code, len(lines)) == (0, 1), lines


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_preset_has_tests_that_reach_it_all(run, name):
    cases = ETC / "presets" / "tests" / f"{name}.yaml"
    code, lines, _ = run("test", cases, "--fail-under", "100")
    assert code == 0, lines
    assert lines[-1].endswith(" passed, 0 failed")
    assert int(lines[-1].split()[0]) >= 3


def test_all_twenty_public_cases_get_the_wanted_verdict(run_json):
    code, rows = run_json("test", ETC / "examples/tests/public-cases.yaml")
    assert code == 0
    assert len(rows) == 20
    assert {row["result"] for row in rows} == {"passed"}


def test_the_rules_of_the_design(run):
    assert run("test", ETC / "examples/tests/design.yaml")[0] == 0


def test_the_defaults_of_the_newest_release_are_these():
    """A change of a default needs a file of its own."""
    (*_, newest) = rulefiles.shipped(rulefiles.DEFAULTS).values()
    assert yaml.safe_load(newest.read_text()) == dict(defaults.texts())


def test_no_preset_differs_from_the_defaults_but_as_it_says(run):
    assert run("diff", "--defaults", "0.1", "preset:inert")[0] == 0
    assert run("diff", "--defaults", "0.1", "preset:host-down")[0] == 1
