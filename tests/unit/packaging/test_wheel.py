# SPDX-License-Identifier: Apache-2.0
"""What the built wheel contains: every module, and nothing else."""

from __future__ import annotations

import configparser
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

#: What a build needs; the tree has more, and what a user left there.
SOURCES = ("pyproject.toml", "setup.cfg", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build a wheel from a copy that is no git repository."""
    copy = tmp_path_factory.mktemp("source")
    for name in SOURCES:
        shutil.copy(ROOT / name, copy)
    for name in ("state_policy", "etc"):
        shutil.copytree(
            ROOT / name,
            copy / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for other in ("tests", "demo", "benchmarks"):
        (copy / other).mkdir()
        (copy / other / "__init__.py").touch()
    build = (
        "from pbr import build; print(build.build_wheel(__import__('sys')"
        ".argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", build, str(copy)],
        cwd=copy,
        env={**os.environ, "PBR_VERSION": "1.2.3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (found,) = copy.glob("*.whl")
    with zipfile.ZipFile(found) as archive:
        yield archive


def test_every_file_of_the_package_is_in_it(wheel):
    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "state_policy").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {n for n in wheel.namelist() if n.startswith("state_policy/")}
    assert packed == expected


def test_samples_and_presets_are_in_it(wheel):
    expected = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "etc").rglob("*")
        if path.is_file() and not path.name.endswith("-generator.conf")
    }
    packed = {
        name.partition(".data/data/")[2]
        for name in wheel.namelist()
        if ".data/data/" in name
    }
    assert packed == expected


def test_nothing_else_is_in_it(wheel):
    for name in wheel.namelist():
        first = name.partition("/")[0]
        assert first == "state_policy" or first.startswith("state_policy-")


def test_an_archive_without_git_is_built_as_the_version_it_is_told(wheel):
    assert Path(wheel.filename).name.startswith("state_policy-1.2.3-")


def test_each_directory_with_modules_is_a_package():
    for path in (ROOT / "state_policy").rglob("*.py"):
        assert (path.parent / "__init__.py").is_file(), path


def test_the_licence_is_in_it(wheel):
    assert any(
        name.endswith(".dist-info/licenses/LICENSE")
        for name in wheel.namelist()
    )


def test_entry_points_name_modules_in_it(wheel):
    names = set(wheel.namelist())
    (listed,) = [n for n in names if n.endswith("/entry_points.txt")]
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str
    parser.read_string(wheel.read(listed).decode())
    groups = {*parser.sections()}
    assert groups >= {
        "console_scripts",
        "paste.filter_factory",
        "oslo.config.opts",
        "oslo.policy.policies",
        "oslo.policy.enforcer",
        "oslo.policy.rule_checks",
        "state_policy.cli",
        "state_policy.drivers",
        "state_policy.effects",
    }
    for group in groups:
        for name, target in parser[group].items():
            path = target.partition(":")[0].replace(".", "/")
            assert {f"{path}.py", f"{path}/__init__.py"} & names, name
