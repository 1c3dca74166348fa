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
        stream.writelines(f"{_harmless(line)}\n" for line in lines)
    elif form == "table":
        stream.write(f"{_table(rows, columns)}\n")
    elif form == "csv":
        stream.write(_csv(rows, columns))
    else:
        document(stream, form, [dict(row) for row in rows])


def document(stream: TextIO, form: str, data: Any) -> None:
    """Write one document as JSON or YAML.

    What the stream cannot take, and what a terminal could obey, stands in it
    as an escape of the format's own.
    """
    if form == "yaml":
        text = _yaml(data, unicode=True)
        if not _fits(stream, text):
            text = _yaml(data, unicode=False)
    else:
        text = _json(data, unicode=True)
        if not _fits(stream, text):
            text = _json(data, unicode=False)
    stream.write(text)


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


def _yaml(data: Any, *, unicode: bool) -> str:
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=unicode)
    return text


def _json(data: Any, *, unicode: bool) -> str:
    text = json.dumps(data, indent=2, ensure_ascii=not unicode)
    # The one control that JSON's own escapes leave out.
    return text.replace("\x7f", "\\u007f") + "\n"


def _fits(stream: TextIO, text: str) -> bool:
    """Return whether a text can be written to a stream as it is."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return _harmless(text) == text


def _harmless(text: str) -> str:
    """Return text without what a terminal could obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def _table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    table = prettytable.PrettyTable(list(columns))
    table.align = "l"
    table.add_rows(
        [[_harmless(cell(row.get(name))) for name in columns] for row in rows]
    )
    return str(table)


def _csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        [_harmless(cell(row.get(name))) for name in columns] for row in rows
    )
    return text.getvalue()
