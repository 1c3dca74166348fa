# SPDX-License-Identifier: Apache-2.0
"""Tests on real Nova, in process, through the real paste file."""
