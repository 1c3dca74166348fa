# SPDX-License-Identifier: Apache-2.0
"""A driver without a cloud: servers are what a test says they are.

It implements the ports as the driver of a cloud has to, and counts what it is
asked for, so that a test can see which facts a request cost.
"""

from state_policy.drivers.memory.driver import (
    CALLER_KEY,
    Driver,
    MemoryServer,
)

__all__ = ["CALLER_KEY", "Driver", "MemoryServer"]
