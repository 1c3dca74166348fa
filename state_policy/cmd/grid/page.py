# SPDX-License-Identifier: Apache-2.0
"""The matrix as one page of HTML that needs no network and no server.

The table is there without scripts, for the facts of the command line; the
script fills it anew for another caller or age.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from importlib import resources
from typing import Any

from state_policy.cmd.casefile import values
from state_policy.cmd.grid.model import SIGNS, Grid, columns
from state_policy.engine.analysis import cells, table
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.outcome import Label
from state_policy.engine.decision import Verdict
from state_policy.engine.facts import CALLER, Facts
from state_policy.engine.operations import OPERATIONS

#: So many callers and ages are in one page.
_ROLES, _AGES = 8, 12


class _Data:
    """What the script needs, each thing once."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._index: dict[str, dict[str, int]] = {}
        self.lists: dict[str, list[Any]] = {
            "outcomes": [],
            "rules": [],
            "rows": [],
            "facts": [],
        }

    def of(self, kind: str, item: Any) -> int:
        """Return the index of an item in a list, added where it is new."""
        key = json.dumps(item, sort_keys=True)
        known = self._index.setdefault(kind, {})
        if key not in known:
            known[key] = len(self.lists[kind])
            self.lists[kind].append(item)
        return known[key]

    def row(self, number: int, row: table.Row) -> int:
        """Return the index of a row's cells, a list of parts a status."""
        return self.of(
            "rows",
            [
                list(self._parts(number, row, mask))
                for mask in columns().values()
            ],
        )

    def _parts(
        self, number: int, row: table.Row, mask: int
    ) -> Iterator[list[Any]]:
        for label, bits in row.cells.items():
            here = bits & mask
            if here:
                rule = self._grid.rule(number, row.operation, label)
                facts = list(row.facts) if row.varies & here else []
                yield [
                    self.of("outcomes", _outcome(label)),
                    self.of("rules", rule),
                    "" if here == mask else _states(here, mask),
                    self.of("facts", facts),
                ]


def _outcome(label: Label) -> dict[str, Any]:
    return {
        "verdict": str(label.verdict),
        "sign": SIGNS[label.verdict],
        "text": str(label),
    }


def _states(bits: int, mask: int) -> str:
    """Return a part of a status in words."""
    tasks, every = cells.tasks_of(bits), cells.tasks_of(mask)
    if tasks == every:
        vm_states = dict.fromkeys(vm_state for vm_state, _ in dd.pairs(bits))
        return f"vm_state {', '.join(vm_states)}"
    rest = [task for task in every if task not in tasks]
    if len(rest) < len(tasks):
        return f"any task_state but {', '.join(rest)}"
    return f"task_state {', '.join(tasks)}"


def render(grid: Grid, facts: Facts) -> str:
    """Return the page.

    :param facts: what the command line gives; shown first
    """
    data = _Data(grid)
    shown = _variant(data, grid, facts)
    roles = grid.roles()[:_ROLES]
    ages = grid.ages()[:_AGES]
    variants = [
        [_variant(data, grid, _with(facts, role, value)) for _, value in ages]
        for role in roles
    ]
    content = {
        "sets": [named.name for named in grid.sets],
        "statuses": list(columns()),
        "operations": [
            {"name": name, "classes": list(OPERATIONS[name].classes)}
            for name in grid.operations
        ],
        "roles": roles,
        "ages": [label for label, _ in ages],
        "variants": variants,
        "shown": shown,
        **data.lists,
    }
    return _filled(
        {
            "TITLE": escape(_title(grid)),
            "CAPTION": escape(_caption(grid)),
            "LEGEND": _legend(),
            "HEAD": "".join(
                f'<th scope="col" role="columnheader">{escape(name)}</th>'
                for name in columns()
            ),
            "BODY": "\n".join(_body(content)),
            "DATA": json.dumps(content, separators=(",", ":")).replace(
                "</", "<\\/"
            ),
        }
    )


def _variant(data: _Data, grid: Grid, facts: Facts) -> list[list[int]]:
    return [
        [data.row(number, row) for row in rows]
        for number, rows in enumerate(grid.rows(facts))
    ]


def _with(facts: Facts, role: str, age: Any) -> dict[str, Any]:
    found = {**facts, CALLER: values.caller({"roles": [role]})}
    if age is not None:
        found["server.state_age"] = age
    return found


def _title(grid: Grid) -> str:
    return "Decisions of " + " and ".join(named.name for named in grid.sets)


def _caption(grid: Grid) -> str:
    text = (
        "What is decided on each operation, by the status that users see. "
        "A star: facts that are not chosen here may change it."
    )
    if len(grid.sets) > 1:
        first, second = (named.name for named in grid.sets)
        text += f" Left of the arrow {first}, right of it {second}."
    return text


def _legend() -> str:
    return "".join(
        f'<li><span class="m m-{verdict}" aria-hidden="true">{sign}</span> '
        f"{verdict}</li>"
        for verdict, sign in SIGNS.items()
    )


def _body(content: Mapping[str, Any]) -> Iterator[str]:
    for index, operation in enumerate(content["operations"]):
        rows = [content["rows"][found[index]] for found in content["shown"]]
        tds = "".join(
            _cell(content, [row[status] for row in rows], index, status)
            for status in range(len(content["statuses"]))
        )
        yield (
            f'<tr role="row" data-op="{index}"><th scope="row" '
            f'role="rowheader">{escape(operation["name"])}</th>{tds}</tr>'
        )


def _cell(
    content: Mapping[str, Any],
    parts: Sequence[Sequence[Sequence[Any]]],
    row: int,
    status: int,
) -> str:
    name = escape(content["statuses"][status])
    marks = '<span class="to" aria-hidden="true">→</span>'.join(
        _marks(content, found) for found in parts
    )
    start = "0" if row == status == 0 else "-1"
    return (
        f'<td role="cell" tabindex="{start}" data-status="{status}" '
        f'data-label="{name}">{marks}</td>'
    )


def _marks(content: Mapping[str, Any], parts: Sequence[Sequence[Any]]) -> str:
    seen = dict.fromkeys(content["outcomes"][p[0]]["verdict"] for p in parts)
    star = any(content["facts"][part[3]] for part in parts)
    shown = "".join(
        f'<span class="m m-{verdict}" aria-hidden="true">'
        f"{SIGNS[Verdict(verdict)]}</span>"
        for verdict in seen
    )
    shown += '<span class="star" aria-hidden="true">*</span>' if star else ""
    return f'{shown}<span class="vh">{" or ".join(seen)}</span>'


def _filled(parts: Mapping[str, str]) -> str:
    text = (
        resources.files("state_policy.cmd.grid")
        .joinpath("page.html")
        .read_text("utf-8")
    )
    for name, content in parts.items():
        text = text.replace(f"@{name}@", content)
    return text
