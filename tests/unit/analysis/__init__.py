# SPDX-License-Identifier: Apache-2.0
"""Tests of state_policy.engine.analysis."""
