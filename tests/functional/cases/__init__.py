# SPDX-License-Identifier: Apache-2.0
"""Cases of people who run OpenStack, on real Nova behind the filter."""
