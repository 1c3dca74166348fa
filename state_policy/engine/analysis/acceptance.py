# SPDX-License-Identifier: Apache-2.0
"""Findings that the author of a file knows of, and why he keeps them.

A comment on a line of its own, anywhere in a file of the rule set::

    # state-policy: accept SP010 server:delete because only the role
    # vault-keeper may lift the protection
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from state_policy.engine.analysis.finding import CODES, Finding

_MARK = re.compile(r"\s*#\s*state-policy\s*:\s*(.*)")
_ACCEPT = re.compile(r"accept\s+(SP\d{3})\s+(\S+)\s+because\s+(\S.*)")
#: Findings about acceptances cannot be accepted.
_NEVER = ("SP011", "SP012")


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One accepted finding.

    :ivar code: of the finding
    :ivar rule: the rule it is about
    :ivar reason: why it is accepted
    :ivar place: ``file:line`` of the comment
    """

    code: str
    rule: str
    reason: str
    place: str


def read(file: str, text: str) -> tuple[list[Acceptance], list[Finding]]:
    """Return the acceptances of a file, and what is wrong with others.

    :param file: its path, for places
    :param text: its content
    """
    found: list[Acceptance] = []
    wrong: list[Finding] = []
    for number, line in enumerate(text.splitlines(), 1):
        marked = _MARK.fullmatch(line)
        if marked is None:
            continue
        place = f"{file}:{number}"
        stated = _ACCEPT.fullmatch(marked[1].strip())
        if stated is None:
            wrong.append(
                Finding("SP012", "#", place, "does not say what and why")
            )
        elif stated[1] not in CODES or stated[1] in _NEVER:
            wrong.append(
                Finding(
                    "SP012",
                    stated[2],
                    place,
                    f"{stated[1]} is no finding that can be accepted",
                )
            )
        else:
            found.append(
                Acceptance(stated[1], stated[2], stated[3].strip(), place)
            )
    return found, wrong


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and why it is accepted, or None."""

    finding: Finding
    reason: str | None = None


def apply(
    findings: Iterable[Finding], acceptances: Sequence[Acceptance]
) -> Iterator[Judged]:
    """Yield every finding with its acceptance, and the stale acceptances."""
    known = {(found.code, found.rule): found for found in acceptances}
    used = set()
    for finding in findings:
        key = finding.code, finding.rule
        used.add(key)
        accepted = known.get(key)
        yield Judged(finding, accepted.reason if accepted else None)
    for acceptance in acceptances:
        if (acceptance.code, acceptance.rule) not in used:
            yield Judged(
                Finding(
                    "SP011",
                    acceptance.rule,
                    acceptance.place,
                    f"accepts {acceptance.code}, which is not found",
                )
            )
