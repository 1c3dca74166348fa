# SPDX-License-Identifier: Apache-2.0
"""Results in the XML that CI systems read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from state_policy.cmd.casefile.running import Result


def write(path: Path, results: Sequence[Result]) -> None:
    """Write a JUnit file: a suite for each case file."""
    root = ElementTree.Element("testsuites")
    by_file: dict[Path, list[Result]] = {}
    for result in results:
        by_file.setdefault(result.file, []).append(result)
    for file, found in by_file.items():
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=str(file),
            tests=str(len(found)),
            failures=str(sum(not result.passed for result in found)),
            errors="0",
            skipped="0",
        )
        for result in found:
            _add(suite, result)
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(
        path, encoding="utf-8", xml_declaration=True
    )


def _add(suite: ElementTree.Element, result: Result) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=str(result.file.with_suffix("")),
        name=result.name,
        file=str(result.file),
        line=str(result.line),
        time="0",
    )
    if not result.passed:
        failure = ElementTree.SubElement(
            case, "failure", message=result.failures[0]
        )
        failure.text = "\n".join(result.lines())
