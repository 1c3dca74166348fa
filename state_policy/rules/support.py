# SPDX-License-Identifier: Apache-2.0
"""What rules ask for that the filter at hand does not carry out."""

from __future__ import annotations

from collections.abc import Collection

from state_policy.engine.decision import Verdict
from state_policy.engine.ruleset import RuleSet
from state_policy.rules.defaults import QUARANTINE_RULES
from state_policy.rules.faults import Fault

#: The suffix whose rule is no verdict of its own.
EVIDENCE = "evidence"


def unsupported(rules: RuleSet, carried_out: Collection[str]) -> list[Fault]:
    """Return a fault for each stated rule whose effect does not exist.

    A rule that is never true (``!``) asks for nothing.

    :param rules: the rule set
    :param carried_out: names of the effects there are (``deny``,
        ``quarantine``), ``evidence`` among them where evidence is kept
    """
    faults = []
    for name, place in rules.sources.items():
        effect = _effect(name)
        if effect is None or effect in carried_out:
            continue
        if rules.rules[name].constant is not False:
            file, _, line = place.rpartition(":")
            reason = _reason(effect)
            faults.append(Fault(file, int(line), f"`{name}`: {reason}"))
    return faults


def _effect(name: str) -> str | None:
    """Return the effect that a rule asks for, None for a plain one."""
    if name in QUARANTINE_RULES:
        return Verdict.QUARANTINE
    parts = name.split(":")
    if parts[0] == "server" and len(parts) == 3:
        return parts[2]
    return None


def _reason(effect: str) -> str:
    if effect == Verdict.QUARANTINE:
        return "the quarantine is off ([state_policy_quarantine] enabled)"
    return f"the filter does not carry out `{effect}` yet"
