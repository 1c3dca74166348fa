# SPDX-License-Identifier: Apache-2.0
"""Files on disk and commands run in process."""

import json

import pytest

from state_policy.cmd import app


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file and returns its path."""

    def file(text, name="rules.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    return file


@pytest.fixture
def run(capsys):
    """Return a function that runs a command: its code, lines and errors."""

    def run(*arguments):
        code = app.main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err

    return run


@pytest.fixture
def run_json(run):
    """Return a function that runs a command with ``-f json``."""

    def run_json(*arguments):
        code, lines, _ = run(*arguments, "-f", "json")
        return code, json.loads("\n".join(lines))

    return run_json
