# SPDX-License-Identifier: Apache-2.0
"""What the installed Nova routes where versions differ.

In Nova 29 and 31 ``/os-volumes_boot/{id}/action`` has every action of a
server, in 33 and 34 those of the servers' own controller alone
(nova.api.openstack.compute.routes).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_BOOT = "/os-volumes_boot/{id}/action"


def boot_actions() -> frozenset[str]:
    """Return the names of the actions at the second address of servers.

    :raises Exception: where the routes are not made as they were; which one,
        nobody knows
    """
    # Not at the top: up to Nova 32 this import patches the process.
    from nova.api.openstack.compute import routes

    (make,) = (
        methods["POST"][0]
        for path, methods in routes.ROUTE_LIST
        if path == _BOOT
    )
    return frozenset(_actions(make))


def _actions(make: Any) -> Iterator[str]:
    main, others = make.args
    for controller in (main, *others):
        yield from controller.wsgi_actions
