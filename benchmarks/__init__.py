# SPDX-License-Identifier: Apache-2.0
"""Measurements: ratios of one run are comparable, milliseconds are not."""
