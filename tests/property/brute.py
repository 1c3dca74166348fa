# SPDX-License-Identifier: Apache-2.0
"""Decisions by oslo.policy's own Enforcer, one cell at a time.

It knows two values only, so every fact is given. Nothing of the engine or of
its analysis is asked: the kinds are called by oslo.policy as in any service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from state_policy.engine.decision import Verdict
from state_policy.engine.states import TASK_STATES, VM_STATES
from state_policy.rules import defaults

#: Suffixes that act, in the order in which they are asked.
_ACTING = (Verdict.BRAKE, Verdict.QUARANTINE, Verdict.ESCALATE)


@cache
def _defaults() -> policy.Rules:
    return policy.Rules.from_dict(dict(defaults.texts()))


class Brute:
    """A rule set in an Enforcer."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[])
        self._enforcer = policy.Enforcer(conf, use_conf=False)
        rules = policy.Rules(_defaults())
        rules.update(policy.Rules.from_dict(texts))
        self._enforcer.set_rules(rules, False)

    def holds(self, rule: str, facts: Mapping[str, Any]) -> bool:
        """Return what oslo.policy says of a rule."""
        caller = facts["caller"]
        target = {
            **caller["target"],
            **{key: fact for key, fact in facts.items() if key != "caller"},
        }
        creds = {k: v for k, v in caller.items() if k != "target"}
        return bool(self._enforcer.enforce(rule, target, creds))

    def verdict(
        self, operation: str, facts: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """Return the verdict and whether evidence comes first.

        A refusal is ``deny`` here, whether or not something could lift it.
        """
        name = f"server:{operation}"
        if not self.holds(name, facts):
            return "deny", False
        for verdict in _ACTING:
            if verdict is Verdict.QUARANTINE and "delete" not in operation:
                continue
            if self.holds(f"{name}:{verdict}", facts):
                evidence = verdict is not Verdict.BRAKE and self.holds(
                    f"{name}:evidence", facts
                )
                return str(verdict), evidence
        return "allow", self.holds(f"{name}:evidence", facts)


def states() -> Iterator[tuple[str, str | None]]:
    """Yield every (vm_state, task_state)."""
    for vm_state in VM_STATES:
        for task_state in (None, *TASK_STATES):
            yield vm_state, task_state
