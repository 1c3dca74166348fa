# SPDX-License-Identifier: Apache-2.0
"""The worked example of the documentation, installed and used."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLE = (
    Path(__file__).parents[3] / "doc" / "source" / "examples" / "acme-kinds"
)

USE = """
import sys
from oslo_policy.policy import RuleDefault
from state_policy.engine.evaluate import decide
from state_policy.engine.ports.reading import Caller, Location
from state_policy.rules import RulesError, load
from state_policy.rules.reading import with_kinds

class Driver:
    def read(self, caller, location, keys):
        return {"server.host": "c1"} if "server.host" in keys else {}

try:
    rules = load([sys.argv[1]])
except RulesError as error:
    sys.exit(str(error))
keys = rules.operations["stop"].needs
facts = with_kinds(Driver()).read(Caller({}), Location("s", "p"), keys)
found = decide(rules, "stop", facts)
print(sorted(keys), facts, found.verdict, found.code, found.retry_after)
"""


def install(directory, *names):
    """Write what installing a distribution of these names leaves behind."""
    stated = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    ((group, points),) = stated["project"]["entry-points"].items()
    for name in names:
        info = directory / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        (info / "entry_points.txt").write_text(
            f"[{group}]\n"
            + "".join(f"{n} = {value}\n" for n, value in points.items())
        )


def run(directory, *arguments, path=EXAMPLE, **environment):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=False,
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": f"{path}:{directory}:{Path(__file__).parents[3]}",
            "PYTHONWARNINGS": "ignore",
            **environment,
        },
        text=True,
    )


@pytest.fixture
def rules(tmp_path):
    found = tmp_path / "rules.yaml"
    found.write_text('"class:power": "not acme.maintenance:true"')
    return str(found)


def test_used_by_a_rule(tmp_path, rules):
    install(tmp_path, "acme_kinds")
    hosts = tmp_path / "hosts"
    hosts.write_text("c1\n")
    done = run(tmp_path, "-c", USE, rules, ACME_MAINTENANCE=str(hosts))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "['acme.maintenance'] {'acme.maintenance': True} deny 409 30\n"
    )


def test_its_own_tests_pass(tmp_path):
    install(tmp_path, "acme_kinds")
    done = run(
        tmp_path,
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"),
        str(EXAMPLE / "test_acme_kinds.py"),
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "13 passed" in done.stdout


def test_not_installed(tmp_path, rules):
    done = run(tmp_path, "-c", USE, rules)
    assert done.returncode == 1
    assert f"{rules}:1: " in done.stderr
    assert "unknown kind `acme.maintenance`" in done.stderr


def test_broken(tmp_path, rules):
    install(tmp_path, "acme_kinds")
    done = run(tmp_path, "-c", USE, rules, path="")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "kind acme.maintenance of acme_kinds: cannot be imported:"
        " ModuleNotFoundError"
    )
    assert len(done.stderr.splitlines()) == 1


def test_installed_twice(tmp_path, rules):
    install(tmp_path, "acme_kinds", "acme_copy")
    done = run(tmp_path, "-c", USE, rules)
    assert done.returncode == 1
    assert "the same kind comes from `acme_kinds:Maintenance`" in done.stderr
