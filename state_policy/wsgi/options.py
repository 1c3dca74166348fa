# SPDX-License-Identifier: Apache-2.0
"""How the filter runs."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path


class Mode(enum.StrEnum):
    """What happens to a verdict other than allow."""

    ENFORCE = "enforce"
    WARN = "warn"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class Options:
    """How the filter runs.

    :ivar max_body: bytes of a body that are read to find an action's name
    :ivar disabled_by: while this file exists nothing is decided
    :ivar boot_actions: what the second address of servers takes; None: every
        action
    """

    mode: Mode = Mode.ENFORCE
    max_body: int = 114688
    disabled_by: Path | None = None
    boot_actions: frozenset[str] | None = None
