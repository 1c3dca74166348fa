# SPDX-License-Identifier: Apache-2.0
"""Rows on standard output: lines for people, or a format for machines."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import prettytable
import yaml

#: The formats of every command that writes rows; ``text`` is for reading.
FORMATS = ("text", "table", "json", "yaml", "csv")

Row = Mapping[str, Any]


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add ``-f``."""
    parser.add_argument(
        "-f",
        "--format",
        choices=FORMATS,
        default="text",
        help="how to write the result (default: text)",
    )


def write(
    stream: TextIO,
    form: str,
    rows: Sequence[Row],
    columns: Sequence[str],
    lines: Sequence[str],
) -> None:
    """Write rows.

    :param form: one of ``FORMATS``
    :param columns: the columns of a table or CSV; JSON and YAML have all
    :param lines: what ``text`` shows instead
    """
    if form == "text":
        stream.writelines(f"{line}\n" for line in lines)
    elif form == "table":
        stream.write(f"{_table(rows, columns)}\n")
    elif form == "csv":
        stream.write(_csv(rows, columns))
    else:
        document(stream, form, [dict(row) for row in rows])


def document(stream: TextIO, form: str, data: Any) -> None:
    """Write one document as JSON or YAML."""
    if form == "yaml":
        yaml.safe_dump(data, stream, sort_keys=False, allow_unicode=True)
    else:
        stream.write(f"{json.dumps(data, indent=2, ensure_ascii=False)}\n")


def cell(value: Any) -> str:
    """Return a value as a table or CSV shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "; ".join(f"{key}={cell(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(cell(item) for item in value)
    return str(value)


def _table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    table = prettytable.PrettyTable(list(columns))
    table.align = "l"
    table.add_rows([[cell(row.get(name)) for name in columns] for row in rows])
    return str(table)


def _csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue()
