# SPDX-License-Identifier: Apache-2.0
"""Load for minutes; run by `make stress`."""
