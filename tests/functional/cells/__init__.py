# SPDX-License-Identifier: Apache-2.0
"""Deployments of several cells, and cells that do not answer."""
