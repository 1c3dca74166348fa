# SPDX-License-Identifier: Apache-2.0
"""The page on policy as code says what the commands do."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from state_policy.cmd import rulefiles
from state_policy.engine.analysis.finding import CODES

SOURCE = Path(__file__).parents[3] / "doc/source"
PAGE = (SOURCE / "policy-as-code.rst").read_text()
REPOSITORY = SOURCE / "examples/policy-repository"


def test_every_code_is_in_the_table():
    found = re.findall(r"^(SP\d{3})  (\w+) +(.+?)(?:  |$)", PAGE, re.M)
    assert {code: (severity, title) for code, severity, title in found} == {
        code: (str(sort.severity), sort.title) for code, sort in CODES.items()
    }


def test_every_preset_is_in_the_table():
    named = set(re.findall(r"^``preset:([a-z0-9-]+)``", PAGE, re.M))
    assert named == set(rulefiles.shipped(rulefiles.PRESET))


def test_the_line_of_diff_is_what_it_writes(file, run):
    rules = file(
        '"server:delete": "not (rule:building and server.state_age:<60m and '
        'role:member)"'
    )
    lines = run("diff", "preset:inert", rules)[1]
    shown = " ".join(PAGE.split())
    for line in lines:
        assert line in shown


def test_the_line_of_check_is_what_it_writes(file, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    file('\n\n"server:delete": "not rule:building"')
    shown = " ".join(PAGE.split())
    for line in run("check", "rules.yaml")[1]:
        assert line in shown


def commands():
    """Return the commands of the two CI examples that read rules alone."""
    tox = (REPOSITORY / "tox.ini").read_text()
    workflow = yaml.safe_load(
        (REPOSITORY / ".github/workflows/policy.yaml").read_text()
    )
    steps = workflow["jobs"]["policy"]["steps"]
    texts = [step.get("run", "") for step in steps] + tox.splitlines()
    return sorted(
        {
            text.strip()
            for text in texts
            if text.strip().startswith("state-policy ") and "diff" not in text
        }
    )


def test_ci_of_the_example_repository_is_green(run, tmp_path, monkeypatch):
    shutil.copytree(REPOSITORY, tmp_path / "repository")
    monkeypatch.chdir(tmp_path / "repository")
    found = commands()
    assert [text.split()[1] for text in found] == ["check", "matrix", "test"]
    for text in found:
        assert run(*text.split()[1:])[0] == 0, text
    assert Path("results.xml").exists()
    assert Path("matrix.html").exists()


def test_the_command_is_installed():
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("state-policy")),
            *("test", str(REPOSITORY / "tests")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "7 passed, 0 failed\n")
