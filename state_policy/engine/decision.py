# SPDX-License-Identifier: Apache-2.0
"""What was decided and why: answer, log, record and tests are made from it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from state_policy.engine.literal import Change


class Verdict(enum.StrEnum):
    """What happens to the request."""

    ALLOW = "allow"
    DENY = "deny"
    WAIT = "wait"
    BRAKE = "brake"
    QUARANTINE = "quarantine"
    ESCALATE = "escalate"


@dataclass(frozen=True, slots=True)
class Lift:
    """Another value of one fact that would let a refused request pass.

    :ivar fact: key of the fact
    :ivar change: whether it passes by itself or the caller can move it
    :ivar values: the values found by trying, as rules write them; for an age
        the least one that lifts
    :ivar together: True where it lifts only along with the others that the
        decision names
    """

    fact: str
    change: Change
    values: tuple[Any, ...]
    together: bool = False


@dataclass(frozen=True, slots=True)
class Blocker:
    """A condition that made a refusal.

    :ivar kind: ``server.task_state``
    :ivar match: as the rule's author wrote it
    :ivar fact: key of the fact it looks at
    :ivar holds: whether the condition holds; a rule ``not kind:match`` is
        broken by a condition that holds
    """

    kind: str
    match: str
    fact: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one evaluation.

    :ivar operation: name of the operation
    :ivar verdict: what happens
    :ivar code: HTTP status of a refusal (403, 409, 429, 503), else None
    :ivar retry_after: seconds, where waiting helps, else None
    :ivar rule: name of the rule that decided
    :ivar rules: the names of all rules it led to, itself first
    :ivar facts: the facts that rule looks at and that were read
    :ivar blocking: the conditions that made a refusal
    :ivar lifts: what would let a refused request pass: each by itself, or
        all together
    :ivar undecided: True where facts were missing and the request passes
    :ivar evidence: True where evidence is written before the verdict is
        carried out
    :ivar revision: the rule set's
    :ivar id: of this decision, given by the caller of the engine
    """

    operation: str
    verdict: Verdict
    code: int | None = None
    retry_after: int | None = None
    rule: str | None = None
    rules: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    blocking: tuple[Blocker, ...] = ()
    lifts: tuple[Lift, ...] = ()
    undecided: bool = False
    evidence: bool = False
    revision: str = ""
    id: str = ""
