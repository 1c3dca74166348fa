# SPDX-License-Identifier: Apache-2.0
"""No character of a rule or a file's name harms what is written."""

import csv
import io
import json
import os
import subprocess
import sys

import pytest
import yaml

ODD = "\x1b[31m\x7f\x9b\u202e"


@pytest.fixture
def odd(file):
    return file('"server:stop": "rule:gone"', f"a{ODD}é.yaml")


def read(form, text):
    """Return the place of the only row."""
    if form == "json":
        return json.loads(text)[0]["place"]
    if form == "yaml":
        return yaml.safe_load(text)[0]["place"]
    return next(csv.DictReader(io.StringIO(text)))["place"]


@pytest.mark.parametrize("form", ["text", "table", "csv", "json", "yaml"])
def test_the_name_of_a_file(odd, run, form):
    code, lines, _ = run("check", odd, "-f", form)
    assert code == 3
    assert all(line.isprintable() for line in lines), lines
    if form in ("json", "yaml"):
        # For machines it is the very name.
        assert read(form, "\n".join(lines)) == f"{odd}:1"
    if form in ("text", "csv", "table"):
        assert "a?[31m???é.yaml:1" in "\n".join(lines)


def test_a_value(file, run):
    value = "".join(f"%{byte:02X}" for byte in ODD.encode())
    path = file(f'"server:delete": "not server.tag:{value}"')
    code, lines, _ = run("check", path)
    assert code == 1
    assert any(
        "SP007" in line and "`server.tag:?[31m" in line for line in lines
    )
    assert all(line.isprintable() for line in lines), lines


@pytest.mark.parametrize("form", ["text", "csv", "json", "yaml"])
def test_where_the_locale_is_ascii(file, form):
    path = file('"server:stop": "rule:caf\u00e9\U0001f600"', "\u00fc.yaml")
    code = (
        "import sys; from state_policy.cmd import app\n"
        f"sys.exit(app.main(['check', {path!r}, '-f', {form!r}]))"
    )
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert (done.returncode, done.stderr) == (3, "")
    if form in ("json", "yaml"):
        assert read(form, done.stdout) == f"{path}:1"
    else:
        assert "rule:caf\\xe9\\U0001f600" in done.stdout
        assert "\\xfc.yaml:1" in done.stdout
