# SPDX-License-Identifier: Apache-2.0
"""What carries verdicts out; found by entry point ``state_policy.effects``."""
