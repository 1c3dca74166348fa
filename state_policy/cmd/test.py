# SPDX-License-Identifier: Apache-2.0
"""``state-policy test``: cases of rules, as data."""

from __future__ import annotations

import argparse
from pathlib import Path

from cliff import command

from state_policy.cmd import exits, output
from state_policy.cmd.casefile import junit, reading, running
from state_policy.cmd.casefile.coverage import Coverage
from state_policy.cmd.casefile.running import Result

_COLUMNS = ("file", "line", "test", "result", "failure")


class Test(command.Command):  # type: ignore[misc,unused-ignore]
    """Run tests of rules.

    Exit codes: 0 all passed, 1 a test failed or the coverage is too low, 2
    a case file cannot be read or there is no test, 3 the rules of a test do
    not load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "paths",
            nargs="+",
            type=Path,
            metavar="DIR",
            help="directory that is searched for case files, or a case file",
        )
        parser.add_argument(
            "--coverage",
            action="store_true",
            help="say which rules and which outcomes of their conditions no "
            "test reaches",
        )
        parser.add_argument(
            "--fail-under",
            type=float,
            metavar="PERCENT",
            help="fail where the coverage is lower; implies --coverage",
        )
        parser.add_argument(
            "--junit",
            type=Path,
            metavar="FILE",
            help="also write the results as JUnit XML",
        )
        output.add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Run, report, return the exit code."""
        suite = reading.read(parsed_args.paths)
        if suite.faults:
            raise exits.CommandError("\n".join(suite.faults), exits.USAGE)
        if not suite.cases and not suite.invalid:
            names = ", ".join(str(path) for path in parsed_args.paths)
            raise exits.CommandError(f"no test found in {names}", exits.USAGE)
        wanted = parsed_args.coverage or parsed_args.fail_under is not None
        coverage = Coverage() if wanted else None
        results = running.run(suite, coverage)
        if parsed_args.junit is not None:
            junit.write(parsed_args.junit, results)
        self._report(parsed_args, results, coverage)
        low = coverage is not None and coverage.percent() < (
            parsed_args.fail_under or 0
        )
        failed = any(not result.passed for result in results)
        return exits.FINDINGS if failed or low else exits.FINE

    def _report(
        self,
        parsed_args: argparse.Namespace,
        results: list[Result],
        coverage: Coverage | None,
    ) -> None:
        failed = sum(not result.passed for result in results)
        lines = [line for result in results for line in result.lines()]
        notes = []
        if coverage is not None:
            notes += coverage.missing()
            notes.append(f"coverage {coverage.percent():.0f} %")
        passed = len(results) - failed
        lines += [*notes, f"{passed} passed, {failed} failed"]
        rows = [_row(result) for result in results]
        output.write(
            self.app.stdout, parsed_args.format, rows, _COLUMNS, lines
        )
        if parsed_args.format != "text":
            # Standard output is for the machine; people read the other.
            self.app.stderr.writelines(f"{note}\n" for note in notes)


def _row(result: Result) -> dict[str, object]:
    return {
        "file": str(result.file),
        "line": result.line,
        "test": result.name,
        "result": "passed" if result.passed else "failed",
        "failure": "; ".join(result.failures) or None,
    }
