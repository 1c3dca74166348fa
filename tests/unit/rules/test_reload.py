# SPDX-License-Identifier: Apache-2.0
"""Reload under load, the short form; the long one is `make stress`."""

import importlib.util
import json
import subprocess
import sys

import pytest

from tests.stress import reloading


def check(result: reloading.Result) -> None:
    assert result.wrong == []
    assert result.decisions >= 5000
    assert result.reloads + result.refusals >= 20
    assert min(result.reloads, result.refusals) >= 5
    assert min(result.seen) > 0


def test_threads():
    check(reloading.run(8, reloads=20, decisions=5000))


@pytest.mark.skipif(
    importlib.util.find_spec("eventlet") is None,
    reason="eventlet is not installed: Nova 33 and later run without it",
)
def test_eventlet():
    # In a process of its own: it is patched as a whole.
    command = [sys.executable, "-m", "tests.stress.reloading", "--eventlet"]
    command += ["--reloads", "20", "--decisions", "5000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    check(reloading.Result(**json.loads(done.stdout)))


def test_a_mixture_would_be_seen(tmp_path):
    """The two sets differ in each answer, and halves of both in some."""
    first, second = reloading.Run(tmp_path, 1).answers
    for one, other in zip(first[:-1], second[:-1], strict=True):
        assert one[:2] != other[:2]
    assert first[0][2] != second[0][2]
