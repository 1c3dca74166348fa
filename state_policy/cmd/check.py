# SPDX-License-Identifier: Apache-2.0
"""``state-policy check``: does a rule set load, and is it sound?"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from cliff import command

from state_policy.cmd import exits
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import RulesError, load, sources, unsupported

#: What looks for findings in a rule set that loads; each becomes one line.
Finder = Callable[[RuleSet], Iterable[Any]]


class Check(command.Command):  # type: ignore[misc,unused-ignore]
    """Check policy files.

    Exit codes: 0 nothing was found, 1 something was found, 2 wrong usage,
    3 the rules do not load.
    """

    #: Further looks at a rule set that loads.
    finders: Sequence[Finder] = ()

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "files",
            nargs="+",
            type=Path,
            metavar="FILE",
            help="policy file, or a directory of policy files; all are "
            "checked as one set",
        )
        parser.add_argument(
            "--runtime",
            action="store_true",
            help="also say what the filter of this version does not carry "
            "out yet: it refuses to start on such rules",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Check, write one line for each thing found, return the exit code."""
        try:
            rules = load(expand(parsed_args.files))
        except RulesError as error:
            return self._report(error.faults, exits.INVALID_RULES)
        finders = [*self.finders, *([not_built] * parsed_args.runtime)]
        found = [item for finder in finders for item in finder(rules)]
        return self._report(found, exits.FINDINGS)

    def _report(self, found: Sequence[Any], code: int) -> int:
        for item in found:
            self.app.stdout.write(f"{item}\n")
        return code if found else exits.FINE


def expand(paths: Iterable[Path]) -> list[Path]:
    """Return the files that paths on a command line mean."""
    found: list[Path] = []
    for path in paths:
        found += sources(None, [path]) if path.is_dir() else [path]
    return found


def not_built(rules: RuleSet) -> list[Any]:
    """Return what the installed effects do not carry out."""
    effects = metadata.entry_points(group="state_policy.effects").names
    return list(unsupported(rules, effects))
