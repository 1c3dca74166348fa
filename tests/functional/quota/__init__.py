# SPDX-License-Identifier: Apache-2.0
"""Quota and server groups of servers moved to quarantine, on real Nova."""
