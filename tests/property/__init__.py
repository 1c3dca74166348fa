# SPDX-License-Identifier: Apache-2.0
"""Tests on random input."""
