# SPDX-License-Identifier: Apache-2.0
"""The facts, a module for each place they come from."""
