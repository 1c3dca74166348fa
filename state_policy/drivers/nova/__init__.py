# SPDX-License-Identifier: Apache-2.0
"""The driver for OpenStack compute, inside its API process.

The only package that imports Nova. Import it when the filter is built.
"""

from state_policy.drivers.nova.driver import Driver, UnknownNovaError

__all__ = ["Driver", "UnknownNovaError"]
