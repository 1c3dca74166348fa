# SPDX-License-Identifier: Apache-2.0
"""Running cases: one decision each, compared with what is expected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from state_policy.cmd import answer, rulefiles
from state_policy.cmd.casefile.coverage import Coverage
from state_policy.cmd.casefile.model import Case, Invalid, Suite
from state_policy.cmd.exits import CommandError
from state_policy.engine.decision import Decision
from state_policy.engine.evaluate import decide
from state_policy.engine.expression import Reference
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import RulesError

Loader = Callable[[Path, tuple[str, ...]], RuleSet]


@dataclass(frozen=True)
class Result:
    """What became of one case.

    :ivar failures: what is not as expected; empty where it passed
    """

    name: str
    file: Path
    line: int
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return whether all was as expected."""
        return not self.failures

    def lines(self) -> list[str]:
        """Return a line for each failure."""
        return [
            f"{self.file}:{self.line}: {self.name}: {failure}"
            for failure in self.failures
        ]


def run(suite: Suite, coverage: Coverage | None = None) -> list[Result]:
    """Run every case.

    :param coverage: notes what the cases reach
    :raises RulesError: for rules of a test that do not load
    """

    @cache
    def loaded(folder: Path, rules: tuple[str, ...]) -> RuleSet:
        return rulefiles.load_named(rules, folder).prepare()

    results = [_run_case(case, loaded, coverage) for case in suite.cases]
    return results + [_run_invalid(case) for case in suite.invalid]


def _run_case(case: Case, loaded: Loader, coverage: Coverage | None) -> Result:
    try:
        rules = loaded(case.file.parent, case.rules)
    except CommandError as error:
        place = f"{case.file}:{case.line}"
        raise CommandError(f"{place}: {error}", error.exit_code) from error
    decision = decide(rules, case.operation, case.facts)
    if coverage is not None:
        coverage.note(rules, case.operation, case.facts)
    failures = tuple(_failures(case, decision, rules))
    return Result(case.name, case.file, case.line, failures)


def _failures(case: Case, decision: Decision, rules: RuleSet) -> list[str]:
    seen = answer.of(decision, case.facts)
    found = []
    for key, wanted in case.expect.items():
        if key == "message_contains":
            found += _missing(seen["message"], wanted)
        elif key == "rule" and wanted in _deciding(decision.rule, rules):
            continue
        elif seen[key] != wanted:
            found.append(
                f"expected {key} {_shown(wanted)}, got {_shown(seen[key])}"
                + (f" by `{decision.rule}`" if key == "verdict" else "")
            )
    return found


def _deciding(name: str | None, rules: RuleSet) -> Iterator[str]:
    """Yield the names of the rule that decided.

    One that no file states only leads to another by default: to its author
    `class:power` decides on a stop.
    """
    while name is not None:
        yield name
        led = None if name in rules.sources else rules.expressions.get(name)
        name = led.name if isinstance(led, Reference) else None


def _missing(message: str | None, wanted: Any) -> list[str]:
    texts = wanted if isinstance(wanted, list) else [wanted]
    return [
        f"expected a message with `{text}`, got `{message or ''}`"
        for text in texts
        if str(text) not in (message or "")
    ]


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _run_invalid(case: Invalid) -> Result:
    try:
        rulefiles.load_named(case.rules, case.file.parent)
    except RulesError as error:
        reasons = [str(fault) for fault in error.faults]
    except CommandError as error:
        reasons = [str(error)]
    else:
        return Result(
            case.name, case.file, case.line, ("the rules were not refused",)
        )
    failures: tuple[str, ...] = ()
    if not any(case.expect in reason for reason in reasons):
        failures = (
            f"expected a fault with `{case.expect}`, got `{reasons[0]}`"
            + (f" and {len(reasons) - 1} more" if len(reasons) > 1 else ""),
        )
    return Result(case.name, case.file, case.line, failures)
