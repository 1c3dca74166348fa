# SPDX-License-Identifier: Apache-2.0
"""``state-policy matrix``: every operation in every state."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from state_policy.cmd import exits, output, rulefiles
from state_policy.cmd.casefile import values
from state_policy.cmd.grid import page
from state_policy.cmd.grid.model import (
    LETTERS,
    Grid,
    Named,
    columns,
    signs,
)
from state_policy.engine.facts import CALLER
from state_policy.engine.operations import OPERATIONS
from state_policy.rules.faults import nearest

_COLUMNS = (
    "operation",
    "status",
    "vm_state",
    "task_state",
    "verdict",
    "code",
    "evidence",
    "rule",
    "varies_with",
)
_SECOND = ("verdict_2", "code_2", "evidence_2", "rule_2", "varies_with_2")
#: Letters of a status in the heading of the text form.
_WIDTH = 4
_SHORT = {"SHELVED_OFFLOADED": "OFFL"}


class Matrix(rulefiles.Command):  # type: ignore[misc,unused-ignore]
    """Show what is decided on every operation in every state.

    Facts that are not given are taken for ordinary; a star marks where
    another value of one would change the decision. Exit codes: 0 shown, 2
    wrong usage, 3 the rules do not load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "rules",
            metavar="RULES",
            help=rulefiles.HELP,
        )
        parser.add_argument(
            "--beside",
            metavar="RULES",
            help="a second rule set, shown side by side with the first",
        )
        parser.add_argument(
            "--operation",
            action="append",
            metavar="NAME",
            help="show this operation only; may be given several times",
        )
        _add_facts(parser)
        parser.add_argument(
            "--html",
            type=Path,
            metavar="FILE",
            help="write one page that needs nothing else; roles and ages are "
            "chosen in it",
        )
        output.add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Show."""
        names = [parsed_args.rules]
        if parsed_args.beside is not None:
            names.append(parsed_args.beside)
        grid = Grid(
            [Named(name, rulefiles.load_named([name])) for name in names],
            operations(parsed_args.operation),
        )
        facts = _facts(parsed_args)
        if parsed_args.html is not None:
            parsed_args.html.write_text(page.render(grid, facts), "utf-8")
            return exits.FINE
        if parsed_args.format == "text":
            output.write(self.app.stdout, "text", [], (), _text(grid, facts))
        else:
            wanted = _COLUMNS + (_SECOND if len(names) > 1 else ())
            rows = list(grid.records(facts))
            output.write(self.app.stdout, parsed_args.format, rows, wanted, [])
        return exits.FINE


def _add_facts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role",
        action="append",
        metavar="ROLE",
        help="of the caller; may be given several times (default: member)",
    )
    parser.add_argument(
        "--age",
        metavar="TIME",
        help="how long the server has been in its state: seconds, or as 15m",
    )
    parser.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="KIND=VALUE",
        help="any other fact, as in `host_up=false`; may be given several "
        "times",
    )


def operations(names: list[str] | None) -> list[str]:
    """Return the operations to show.

    :raises CommandError: for a name that is none
    """
    for name in names or ():
        if name not in OPERATIONS:
            raise exits.CommandError(
                f"unknown operation `{name}`{nearest(name, OPERATIONS)}",
                exits.USAGE,
            )
    return list(names or OPERATIONS)


def _facts(parsed_args: argparse.Namespace) -> dict[str, Any]:
    stated = dict(values.pairs(parsed_args.fact))
    if parsed_args.age is not None:
        stated["state_age"] = parsed_args.age
    try:
        facts = dict(values.fact(key, text) for key, text in stated.items())
        roles = parsed_args.role or ["member"]
        facts[CALLER] = values.caller({"roles": roles})
    except ValueError as error:
        raise exits.CommandError(str(error), exits.USAGE) from error
    return facts


def _text(grid: Grid, facts: dict[str, Any]) -> list[str]:
    """Return a grid of letters; operations that are alike share a row."""
    width = 30
    heads = [
        _SHORT.get(name, name[:_WIDTH]).ljust(_WIDTH) for name in columns()
    ]
    lines = [f"{'':{width}} {' '.join(heads)}".rstrip()]
    for number, rows in enumerate(grid.rows(facts)):
        if len(grid.sets) > 1:
            lines.append(f"-- {grid.sets[number].name}")
        grouped: dict[tuple[str, ...], list[str]] = {}
        for row in rows:
            cells = tuple(
                signs(row, mask, LETTERS) for mask in columns().values()
            )
            grouped.setdefault(cells, []).append(row.operation)
        for cells, names in grouped.items():
            shown = " ".join(cell.ljust(_WIDTH) for cell in cells)
            lines += [f"{name:{width}} {shown}".rstrip() for name in names]
    legend = ", ".join(f"{sign} {name}" for name, sign in LETTERS.items())
    lines.append(f"{legend}, * depends on facts that are not given")
    lines.append("columns: " + ", ".join(columns()) + " (OFFL)")
    return lines
