# SPDX-License-Identifier: Apache-2.0
"""``state-policy replay``: a log of decisions against other rules."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cliff import command

from state_policy.cmd import exits, output, rulefiles
from state_policy.cmd.casefile import values
from state_policy.cmd.casefile.coverage import asked
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import CALLER, Age, Facts, Part
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ruleset import RuleSet

_COLUMNS = ("operation", "old", "new", "undecided", "count", "projects")
#: So many projects are named in a line.
_SHOWN = 3


@dataclass
class Change:
    """Decisions that would be another one.

    :ivar count: how many
    :ivar projects: how many of each project
    """

    operation: str
    old: str
    new: str
    undecided: bool
    count: int = 0
    projects: Counter[str] = field(default_factory=Counter)


class Replay(command.Command):  # type: ignore[misc,unused-ignore]
    """Decide again what a log says was decided, by other rules.

    The log has one JSON object a line, as the filter writes them; what
    stands before the first brace of a line is skipped, and so are lines
    without one. Only facts that the old rules asked for are in the log: where
    the new rules need more, the new decision is undecided. Exit codes: 0
    nothing would change, 1 something would, 2 wrong usage, 3 the rules do
    not load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("log", type=Path, metavar="LOG")
        parser.add_argument(
            "rules", nargs="+", metavar="RULES", help=rulefiles.HELP
        )
        output.add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Replay, write what would change, return the exit code."""
        rules = rulefiles.load_named(parsed_args.rules).prepare()
        replay = Replayed()
        try:
            with parsed_args.log.open(
                encoding="utf-8", errors="replace"
            ) as log:
                replay.run(rules, log)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise exits.CommandError(
                f"{parsed_args.log}: cannot be read: {reason}", exits.USAGE
            ) from error
        if replay.skipped and not replay.read:
            raise exits.CommandError(
                f"no decision found in {parsed_args.log}: is it the log of "
                "`state_policy.decisions`?",
                exits.USAGE,
            )
        rows = [_row(change) for change in replay.changes()]
        lines = [*(_line(row) for row in rows), replay.summary()]
        output.write(
            self.app.stdout, parsed_args.format, rows, _COLUMNS, lines
        )
        return exits.FINDINGS if rows else exits.FINE


class Replayed:
    """What became of a log.

    :ivar read: decisions read
    :ivar skipped: lines that are none of ours
    """

    def __init__(self) -> None:
        self.read = self.skipped = 0
        self._changes: dict[tuple[str, str, str, bool], Change] = {}

    def run(self, rules: RuleSet, lines: Iterable[str]) -> None:
        """Decide again on every line."""
        unnamed = _unnamed(rules)
        for line in lines:
            try:
                entry = _entry(line)
                facts = None if entry is None else _facts(entry, unnamed)
            except (TypeError, ValueError, RecursionError):
                # JSON, but no line that a filter wrote.
                entry = facts = None
            if entry is None or facts is None:
                self.skipped += bool(line.strip())
                continue
            self.read += 1
            self._replay(rules, entry, facts)

    def _replay(
        self, rules: RuleSet, entry: Mapping[str, Any], facts: Facts
    ) -> None:
        operation = entry["operation"]
        decision = decide(rules, operation, facts)
        old = _told(entry["verdict"], entry.get("code"))
        new = _told(decision.verdict, decision.code)
        undecided = any(
            rule.test(facts) is None for rule in asked(rules, operation, facts)
        )
        if old == new and not undecided:
            return
        # What the same rules left open then is no change.
        same = entry.get("revision") == rules.revision
        if old == new and (same or entry.get("undecided")):
            return
        key = operation, old, new, undecided
        change = self._changes.setdefault(key, Change(*key))
        change.count += 1
        change.projects[str(entry.get("project") or "-")] += 1

    def changes(self) -> list[Change]:
        """Return what would change, the most frequent first."""
        return sorted(
            self._changes.values(),
            key=lambda c: (-c.count, c.operation, c.old, c.new),
        )

    def summary(self) -> str:
        """Return the closing line."""
        changed = sum(change.count for change in self._changes.values())
        return f"{changed} of {self.read} decisions would be another" + (
            f"; {self.skipped} lines skipped" if self.skipped else ""
        )


def _entry(line: str) -> dict[str, Any] | None:
    """Return a decision of the log, or None for another line."""
    brace = line.find("{")
    try:
        found = json.loads(line[brace:]) if brace >= 0 else None
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("facts"), dict):
        return None
    if found.get("operation") not in OPERATIONS or "verdict" not in found:
        return None
    return found


def _unnamed(rules: RuleSet) -> frozenset[str]:
    """Return the facts whose parts say too little to some condition."""
    return frozenset(
        literal.fact
        for rule in rules.rules.values()
        for literal in rule.literals
        if literal.names is None
    )


def _facts(
    entry: Mapping[str, Any], unnamed: frozenset[str]
) -> dict[str, Any]:
    facts = {
        key: found
        for key, value in entry["facts"].items()
        if not isinstance(found := _value(value), Part) or key not in unnamed
    }
    credentials = {
        "roles": list(entry.get("roles") or ()),
        "project_id": entry.get("project") or values.PROJECT,
        "user_id": entry.get("user") or values.USER,
        "is_admin": "admin" in (entry.get("roles") or ()),
    }
    facts[CALLER] = {**credentials, "target": dict(_target(credentials))}
    return facts


def _target(credentials: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the server's owner: the log does not say; the caller is taken."""
    for key in ("project_id", "user_id"):
        yield key, credentials[key]


def _value(value: Any) -> Any:
    """Return a fact as the engine knows it; the log has it as JSON."""
    if isinstance(value, dict) and set(value) == {"seconds", "exact"}:
        return Age(float(value["seconds"]), bool(value["exact"]))
    if isinstance(value, dict) and set(value) == {"has", "lacks", "others"}:
        has, lacks = (frozenset(map(str, value[k])) for k in ("has", "lacks"))
        return Part(has, lacks, bool(value["others"]))
    if isinstance(value, list):
        return frozenset(str(item) for item in value)
    return value


def _told(verdict: Any, code: Any) -> str:
    return f"{verdict} {code}" if code and verdict == "deny" else f"{verdict}"


def _row(change: Change) -> dict[str, Any]:
    return {
        "operation": change.operation,
        "old": change.old,
        "new": change.new,
        "undecided": change.undecided,
        "count": change.count,
        "projects": dict(change.projects.most_common()),
    }


def _line(row: Mapping[str, Any]) -> str:
    projects = list(row["projects"].items())
    shown = [f"{name} ({count})" for name, count in projects[:_SHOWN]]
    if len(projects) > _SHOWN:
        shown.append(f"{len(projects) - _SHOWN} more")
    note = ", undecided: the log lacks facts" if row["undecided"] else ""
    return (
        f"{row['operation']}: {row['old']} -> {row['new']}{note}: "
        f"{row['count']} times, projects {', '.join(shown)}"
    )
