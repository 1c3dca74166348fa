# SPDX-License-Identifier: Apache-2.0
"""What rules ask for that the filter at hand does not carry out."""

from __future__ import annotations

from collections.abc import Collection

from state_policy.engine.decision import Verdict
from state_policy.engine.ruleset import RuleSet
from state_policy.rules.faults import Fault

#: The suffix whose rule is no verdict of its own.
EVIDENCE = "evidence"


def unsupported(rules: RuleSet, carried_out: Collection[str]) -> list[Fault]:
    """Return a fault for each stated suffix whose effect does not exist.

    A suffix that is never true (``!``) asks for nothing.

    :param rules: the rule set
    :param carried_out: names of the effects there are (``deny``,
        ``quarantine``), ``evidence`` among them where evidence is kept
    """
    wanted = {*Verdict, EVIDENCE} - {Verdict.ALLOW, Verdict.DENY}
    missing = wanted - set(carried_out)
    faults = []
    for name, place in rules.sources.items():
        parts = name.split(":")
        if parts[0] != "server" or len(parts) != 3:
            continue
        if parts[2] in missing and rules.rules[name].constant is not False:
            file, _, line = place.rpartition(":")
            faults.append(
                Fault(
                    file,
                    int(line),
                    f"`{name}`: the filter does not carry out"
                    f" `{parts[2]}` yet",
                )
            )
    return faults
