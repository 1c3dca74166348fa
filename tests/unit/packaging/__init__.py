# SPDX-License-Identifier: Apache-2.0
"""Tests of what is delivered: samples, and the contents of the wheel."""
