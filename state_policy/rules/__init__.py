# SPDX-License-Identifier: Apache-2.0
"""Rules as deployers write them: oslo.policy files, read strictly.

``load`` returns a rule set or says everything that is wrong. Where
oslo.policy takes an error for a rule that never holds, or for one that
always does, the set is refused.
"""

from __future__ import annotations

from state_policy.rules.faults import Fault, RulesError
from state_policy.rules.files import sources
from state_policy.rules.loader import load
from state_policy.rules.store import Store
from state_policy.rules.support import unsupported

__all__ = [
    "Fault",
    "RulesError",
    "Store",
    "load",
    "sources",
    "unsupported",
]
