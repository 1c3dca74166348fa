# SPDX-License-Identifier: Apache-2.0
"""``state-policy check``: does a rule set load, and is it sound?"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from state_policy.cmd import exits, output, rulefiles
from state_policy.engine.analysis import acceptance
from state_policy.engine.analysis.acceptance import Judged
from state_policy.engine.analysis.finding import CODES, Finding, Severity
from state_policy.engine.analysis.outcome import Analysis
from state_policy.engine.analysis.search import search
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import Fault, RulesError, load, unsupported
from state_policy.rules.faults import one_line

_COLUMNS = (
    "severity",
    "code",
    "rule",
    "place",
    "message",
    "advice",
    "accepted",
)


class Check(rulefiles.Command):  # type: ignore[misc,unused-ignore]
    """Check policy files.

    Exit codes: 0 nothing was found, 1 something was found, 2 wrong usage,
    3 the rules do not load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "files",
            nargs="+",
            metavar="FILE",
            help=f"{rulefiles.HELP}; all are checked as one set",
        )
        parser.add_argument(
            "--runtime",
            action="store_true",
            help="also say what the filter of this version does not carry "
            "out yet: it refuses to start on such rules",
        )
        parser.add_argument(
            "--strict",
            action="store_true",
            help="let notes count: exit with 1 for them too",
        )
        output.add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Check, write one line for each thing found, return the exit code."""
        files = rulefiles.expand(parsed_args.files)
        try:
            rules = load(files)
        except RulesError as error:
            faults = [_invalid(fault) for fault in error.faults]
            self._write(parsed_args.format, faults)
            return exits.INVALID_RULES
        analysis = Analysis(rules)
        found = list(judge(analysis, files, parsed_args.runtime))
        self._write(
            parsed_args.format,
            [_row(judged) for judged in found],
            summary(analysis, found),
        )
        least = Severity.NOTE if parsed_args.strict else Severity.WARNING
        counts = any(
            judged.reason is None and judged.finding.severity >= least
            for judged in found
        )
        return exits.FINDINGS if counts else exits.FINE

    def _write(
        self,
        form: str,
        rows: Sequence[dict[str, Any]],
        last: str | None = None,
    ) -> None:
        lines = [_line(row) for row in rows if row["accepted"] is None]
        if last is not None:
            lines.append(last)
        output.write(self.app.stdout, form, rows, _COLUMNS, lines)


def judge(
    analysis: Analysis, files: Iterable[Path], runtime: bool = False
) -> Iterable[Judged]:
    """Yield the findings of a rule set, with what its files accept.

    :param files: the files it was loaded from
    :param runtime: also look for effects that are not built yet
    """
    accepted: list[acceptance.Acceptance] = []
    found: list[Finding] = list(search(analysis))
    if runtime:
        found += not_built(analysis.rules)
    for file in files:
        more, wrong = acceptance.read(str(file), file.read_text("utf-8-sig"))
        accepted += more
        found += wrong
    return acceptance.apply(found, accepted)


def not_built(rules: RuleSet) -> list[Finding]:
    """Return what the installed effects do not carry out."""
    effects = metadata.entry_points(group="state_policy.effects").names
    return [
        Finding("SP014", _named(fault), f"{fault.file}:{fault.line}", said)
        for fault in unsupported(rules, effects)
        for said in [fault.reason.partition(": ")[2] or fault.reason]
    ]


def _named(fault: Fault) -> str:
    """Return the rule that a fault shows in backticks."""
    return fault.reason.split("`")[1] if "`" in fault.reason else ""


def summary(analysis: Analysis, found: Sequence[Judged]) -> str:
    """Return the closing line."""
    left = [j.finding.severity for j in found if j.reason is None]
    counts = [
        f"{left.count(severity)} {severity}"
        + ("" if left.count(severity) == 1 else "s")
        for severity in sorted(Severity, reverse=True)
    ]
    accepted = len(found) - len(left)
    cells = sum(
        analysis.space.cells(outcomes.axes)
        for outcomes in analysis.outcomes.values()
    )
    return f"{', '.join(counts)}, {accepted} accepted; {cells:,} cells checked"


def _row(judged: Judged) -> dict[str, Any]:
    found = judged.finding
    return {
        "severity": str(found.severity),
        "code": found.code,
        "title": CODES[found.code].title,
        "rule": found.rule,
        "place": found.place,
        "message": found.message,
        "advice": found.advice,
        "accepted": judged.reason,
    }


def _invalid(fault: Fault) -> dict[str, Any]:
    place = f"{fault.file}:{fault.line}" if fault.line else fault.file
    return {
        "severity": "invalid",
        "code": None,
        "title": "does not load",
        "rule": None,
        "place": place,
        "message": fault.reason,
        "advice": None,
        "accepted": None,
    }


def _line(row: dict[str, Any]) -> str:
    place = f"{row['place']}: " if row["place"] else ""
    if row["code"] is None:
        return one_line(f"{place}{row['message']}")
    return one_line(
        f"{place}{row['severity']} {row['code']}: `{row['rule']}` "
        f"{row['message']}; {row['advice']}"
    )
