# SPDX-License-Identifier: Apache-2.0
"""The matrix of operations and states, as rows, as signs and as a page."""
