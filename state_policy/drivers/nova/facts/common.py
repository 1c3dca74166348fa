# SPDX-License-Identifier: Apache-2.0
"""The facts that the server's own row tells; no SELECT beside it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from oslo_utils import uuidutils

from state_policy.drivers.nova.facts.source import age
from state_policy.drivers.nova.server import Server
from state_policy.engine.states import POWER_NUMBERS

KEYS = frozenset(
    {
        "server.vm_state",
        "server.task_state",
        "server.power_state",
        "server.age",
        "server.launched",
        "server.locked",
        "server.disable_terminate",
        "server.host",
        "server.image",
        "server.cell_up",
    }
)


def facts(server: Server) -> Mapping[str, Any]:
    """Return what a server's row tells."""
    return {
        "server.vm_state": server.vm_state,
        "server.task_state": server.task_state,
        "server.power_state": _power(server.power_state),
        "server.age": age(server.created_at),
        "server.launched": server.launched_at is not None,
        "server.locked": bool(server.locked),
        "server.disable_terminate": bool(server.disable_terminate),
        "server.host": server.host or None,
        "server.image": canonical(server.image_ref) or None,
        "server.cell_up": True,
    }


def canonical(identity: str | None) -> str | None:
    """Return an id as the other service writes it.

    Nova takes an image's or a volume's id in capitals too, and keeps it so
    (``format: uuid`` in nova.api.validation.parameter_types, 34.0.0).
    """
    if identity and uuidutils.is_uuid_like(identity):
        return str(uuid.UUID(identity))
    return identity


def _power(number: int | None) -> str | None:
    return None if number is None else POWER_NUMBERS.get(number)
