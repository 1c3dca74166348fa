# SPDX-License-Identifier: Apache-2.0
"""Tests of single parts; no Nova API runs."""
