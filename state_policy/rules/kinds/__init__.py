# SPDX-License-Identifier: Apache-2.0
"""The conditions that rules can use, and the contract to add more."""

from __future__ import annotations

from state_policy.rules.kinds.base import Kind, Subject
from state_policy.rules.kinds.registry import (
    BUILTIN,
    GROUP,
    discover,
    installed,
)

__all__ = ["BUILTIN", "GROUP", "Kind", "Subject", "discover", "installed"]
