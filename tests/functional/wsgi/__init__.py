# SPDX-License-Identifier: Apache-2.0
"""The filter's own road, on real Nova."""
