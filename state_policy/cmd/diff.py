# SPDX-License-Identifier: Apache-2.0
"""``state-policy diff``: where two rule sets decide differently."""

from __future__ import annotations

import argparse
from typing import Any

from state_policy.cmd import exits, output, rulefiles
from state_policy.engine.analysis.compare import Comparison, Difference, Part

_COLUMNS = (
    "operation",
    "old",
    "new",
    "caller",
    "where",
    "cells",
)


class Diff(rulefiles.Command):  # type: ignore[misc,unused-ignore]
    """Compare two rule sets over the whole decision space.

    Exit codes: 0 they decide alike, 1 they differ, 2 wrong usage, 3 rules do
    not load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "rules",
            nargs="+",
            metavar="RULES",
            help="OLD and NEW, or NEW alone with --defaults: "
            f"{rulefiles.HELP}",
        )
        parser.add_argument(
            "--defaults",
            metavar="RELEASE",
            help="compare with the default rules of a release",
        )
        parser.add_argument(
            "--lines",
            type=int,
            default=40,
            metavar="COUNT",
            help="write at most so many lines, 0 for all (default: 40)",
        )
        output.add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Compare, write what differs, return the exit code."""
        old, new = _names(parsed_args)
        found = Comparison(
            rulefiles.load_named([old]), rulefiles.load_named([new])
        )
        lines = list(found.lines())
        if parsed_args.lines and len(lines) > parsed_args.lines:
            left = len(lines) - parsed_args.lines
            lines = [*lines[: parsed_args.lines], f"... and {left} lines more"]
        output.write(
            self.app.stdout,
            parsed_args.format,
            _rows(found),
            _COLUMNS,
            [*lines, *found.space.bounds, summary(found)],
        )
        return exits.FINDINGS if found.differences else exits.FINE


def _names(parsed_args: argparse.Namespace) -> tuple[str, str]:
    names = list(parsed_args.rules)
    if parsed_args.defaults is not None:
        names.insert(0, f"{rulefiles.DEFAULTS}{parsed_args.defaults}")
    if len(names) != 2:
        raise exits.CommandError(
            "two rule sets are compared: give OLD and NEW, or --defaults "
            "RELEASE and NEW",
            exits.USAGE,
        )
    return names[0], names[1]


def summary(found: Comparison) -> str:
    """Return the closing line."""
    differ = sum(found.count(item) for item in found.differences)
    if not differ:
        return f"no difference in {found.cells:,} cells"
    names = dict.fromkeys(item.operation for item in found.differences)
    return (
        f"{differ:,} of {found.cells:,} cells differ, in {len(names)} "
        f"operation{'' if len(names) == 1 else 's'}"
    )


def _rows(found: Comparison) -> list[dict[str, Any]]:
    return [
        _row(item, part)
        for item in found.differences
        for part in found.parts(item)
    ]


def _row(item: Difference, part: Part) -> dict[str, Any]:
    return {
        "operation": item.operation,
        "old": str(item.old),
        "new": str(item.new),
        "caller": part.caller or "everyone",
        "where": part.text,
        "cells": part.cells,
        "facts": part.facts,
        "states": [[vm_state, task] for vm_state, task in part.states],
    }
