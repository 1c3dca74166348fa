# SPDX-License-Identifier: Apache-2.0
"""1,000,000 decisions while 1,000 changed files are taken or refused."""

import json
import subprocess
import sys

import pytest

from tests.stress import reloading

pytestmark = pytest.mark.stress


def test_threads():
    result = reloading.run(8, reloads=1000, decisions=1_000_000)
    assert result.wrong == []
    assert result.decisions >= 1_000_000
    assert result.reloads + result.refusals >= 1000
    assert min(result.seen) > 10_000
    assert min(result.reloads, result.refusals) >= 400


def test_eventlet():
    command = [sys.executable, "-m", "tests.stress.reloading", "--eventlet"]
    command += ["--reloads", "200", "--decisions", "100000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["decisions"] >= 100_000
    assert result["reloads"] + result["refusals"] >= 200
    assert min(result["seen"]) > 1000
