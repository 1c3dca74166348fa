# SPDX-License-Identifier: Apache-2.0
"""What a case file states, read and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Case:
    """One test: facts, and the decision they are expected to have.

    :ivar name: what it shows
    :ivar file: the case file
    :ivar line: where it begins
    :ivar rules: files, relative to the case file, or ``preset:NAME``
    :ivar operation: name of the operation
    :ivar facts: the caller and what is given
    :ivar expect: ``verdict``, ``code``, ``retry_after``, ``rule``,
        ``message_contains``, ``evidence``: those that are stated
    """

    name: str
    file: Path
    line: int
    rules: tuple[str, ...]
    operation: str
    facts: Mapping[str, Any]
    expect: Mapping[str, Any]


@dataclass(frozen=True)
class Invalid:
    """A rule set that must be refused.

    :ivar expect: text that one of the faults must contain
    """

    name: str
    file: Path
    line: int
    rules: tuple[str, ...]
    expect: str


@dataclass
class Suite:
    """Everything that the case files of a run state.

    :ivar faults: what cannot be read, each ``file:line: reason``
    """

    cases: list[Case] = field(default_factory=list)
    invalid: list[Invalid] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
