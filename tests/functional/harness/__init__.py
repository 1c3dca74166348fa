# SPDX-License-Identifier: Apache-2.0
"""What it takes to run real Nova in one process with the filter in it.

The functional tests and the demonstration are built from these pieces.
Nothing here stands in for Nova: its API, conductor, scheduler, compute
manager, placement and databases are its own. What is not real is what
Nova's own functional tests replace too: the hypervisor (Nova's fake
driver), Keystone, Neutron, Glance, Cinder and the message bus.
"""
