# SPDX-License-Identifier: Apache-2.0
"""Nova's own functional tests, run behind the filter.

With no rules the filter must not disturb anything: what passes without it
passes with it, and what fails without it fails. ``python -m
tests.nova_suite`` takes the tests from Nova's source distribution of the
installed version and compares with ``results-<version>.txt``, which was
recorded without the filter.
"""
