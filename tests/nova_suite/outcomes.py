# SPDX-License-Identifier: Apache-2.0
"""Results of a run: written to a file, read back, compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import subunit
import testtools

#: Test id -> ``success``, ``fail``, ``skip`` or ``xfail``.
Outcomes = Mapping[str, str]


def parse(stream: BinaryIO) -> dict[str, str]:
    """Return the outcomes of a subunit stream."""
    found: dict[str, str] = {}

    def note(test: dict[str, Any]) -> None:
        if test["id"] and test["status"] not in ("exists", "inprogress"):
            found[test["id"]] = test["status"]

    _read(stream, note)
    return found


def _read(stream: BinaryIO, note: Callable[[dict[str, Any]], None]) -> None:
    result = testtools.StreamToDict(note)
    source = subunit.ByteStreamToStreamResult(stream, non_subunit_name="other")
    result.startTestRun()
    source.run(result)
    result.stopTestRun()


def listed(stream: BinaryIO) -> list[str]:
    """Return the ids of the tests that a subunit stream says exist."""
    found: list[str] = []

    def note(test: dict[str, Any]) -> None:
        if test["status"] == "exists":
            found.append(test["id"])

    _read(stream, note)
    return sorted(found)


def plain(name: str) -> str:
    """Return a test's name without its scenario.

    A list has the names only; one of them may run as several tests, such as
    ``test_x(v2)`` and ``test_x(v2_1)``.
    """
    return name.partition("(")[0]


def load(file: Path) -> dict[str, str]:
    """Return the outcomes of a recorded run."""
    lines = file.read_text().splitlines()
    return dict(
        reversed(line.split(" ", 1))
        for line in lines
        if line and not line.startswith("#")
    )


def save(file: Path, outcomes: Outcomes, header: str) -> None:
    """Write a run down, sorted, so that it can be kept and compared."""
    lines = [f"{outcomes[name]} {name}" for name in sorted(outcomes)]
    file.write_text("\n".join([f"# {header}", *lines, ""]))


def differences(wanted: Outcomes, found: Outcomes) -> list[str]:
    """Return the tests whose outcome differs, or that one run lacks."""
    return sorted(
        name
        for name in wanted.keys() | found.keys()
        if wanted.get(name) != found.get(name)
    )


def summary(outcomes: Outcomes) -> str:
    """Return how many passed, failed and were skipped."""
    counts = Counter(outcomes.values())
    passed = counts["success"] + counts["xfail"]
    failed = sum(counts.values()) - passed - counts["skip"]
    return f"{passed} passed, {failed} failed, {counts['skip']} skipped"
