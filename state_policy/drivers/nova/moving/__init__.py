# SPDX-License-Identifier: Apache-2.0
"""Moving servers in Nova: the only place that writes to Nova's stores.

Nova has no call that gives a server to another project. What is done here was
measured against Nova 34.0.0; each step is idempotent and the order of the
steps belongs to ``state_policy.quarantine``.
"""

from state_policy.drivers.nova.moving._mover import Mover

__all__ = ["Mover"]
