# SPDX-License-Identifier: Apache-2.0
"""Tests of rules as YAML files: the format is a contract with their authors.

See the documentation of ``state-policy test`` for it.
"""
