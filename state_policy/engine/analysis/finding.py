# SPDX-License-Identifier: Apache-2.0
"""Findings: what is likely wrong with a rule set that loads.

The codes are a contract with those who accept a finding in a file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple


class Severity(enum.IntEnum):
    """How much a finding matters.

    A note is shown, and counts only when ``check`` is strict.
    """

    NOTE = 1
    WARNING = 2
    ERROR = 3

    def __str__(self) -> str:
        return self.name.lower()


class Code(NamedTuple):
    """A sort of finding.

    :ivar severity: of all findings of this sort
    :ivar title: a few words
    :ivar advice: what to do, one line
    """

    severity: Severity
    title: str
    advice: str


#: Every sort of finding by its code.
CODES: Mapping[str, Code] = MappingProxyType(
    {
        "SP001": Code(
            Severity.ERROR,
            "never true",
            'look for conditions that exclude each other; for never write "!"',
        ),
        "SP002": Code(
            Severity.WARNING,
            "always true",
            'look for conditions that cover every value; for always write "@"',
        ),
        "SP003": Code(
            Severity.WARNING,
            "without effect",
            "remove it, or look for what it was meant to add",
        ),
        "SP004": Code(
            Severity.ERROR,
            "no way out",
            "allow delete after some time, as in `not (... and "
            "server.state_age:<30m)`",
        ),
        "SP005": Code(
            Severity.NOTE,
            "opaque refusal",
            "users see one status for both: say in your documentation which "
            "task they wait for",
        ),
        "SP006": Code(
            Severity.WARNING,
            "unprotected twin",
            "state the guard as class:destroy, or for the other operation too",
        ),
        "SP007": Code(
            Severity.WARNING,
            "rests on what the caller can change",
            "refuse the operations that change it under the same condition, "
            "or use a fact that users cannot change",
        ),
        "SP008": Code(
            Severity.WARNING,
            "wait that can never end",
            "wait only where a task, an age or another passing fact refuses",
        ),
        "SP009": Code(
            Severity.WARNING,
            "wait for what is never refused",
            "refuse the operation in the states that it is to wait in",
        ),
        "SP010": Code(
            Severity.WARNING,
            "unbounded protection",
            "add a bound, as in `and server.age:<90d`, or accept this and say "
            "who lifts it",
        ),
        "SP011": Code(
            Severity.WARNING,
            "stale acceptance",
            "remove the comment",
        ),
        "SP012": Code(
            Severity.ERROR,
            "unreadable acceptance",
            "write `# state-policy: accept SP004 server:delete because ...`",
        ),
        "SP013": Code(
            Severity.WARNING,
            "analysis not exact",
            "have the kind hold when one of its values does",
        ),
        "SP014": Code(
            Severity.ERROR,
            "not built yet",
            "the filter refuses to start with it: leave it out for now",
        ),
    }
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    :ivar code: a key of ``CODES``
    :ivar rule: name of the rule it is about
    :ivar place: ``file:line`` of the rule, or empty
    :ivar message: what was found, lower case, no full stop
    """

    code: str
    rule: str
    place: str
    message: str

    @property
    def severity(self) -> Severity:
        """Return how much it matters."""
        return CODES[self.code].severity

    @property
    def advice(self) -> str:
        """Return what to do."""
        return CODES[self.code].advice
