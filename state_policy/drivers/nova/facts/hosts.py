# SPDX-License-Identifier: Apache-2.0
"""Facts about a server's host: whether it answers, what it runs, its zone."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import nova.conf
import sqlalchemy as sa
from nova import servicegroup
from nova.db.api import models as api_models
from nova.db.main import models

from state_policy.drivers.nova.facts.source import Source
from state_policy.drivers.nova.server import Server

_SERVICES = models.Service.__table__
_NODES = models.ComputeNode.__table__
_HOSTS = api_models.AggregateHost.__table__
_AGGREGATES = api_models.Aggregate.__table__
_ITEMS = api_models.AggregateMetadata.__table__

_SELECT_SERVICE = sa.select(
    _SERVICES.c.host,
    _SERVICES.c.binary,
    _SERVICES.c.topic,
    _SERVICES.c.forced_down,
    _SERVICES.c.last_seen_up,
    _SERVICES.c.created_at,
    _SERVICES.c.updated_at,
).where(
    _SERVICES.c.host == sa.bindparam("host"),
    _SERVICES.c.binary == "nova-compute",
    _SERVICES.c.deleted == 0,
)

_SELECT_NODE = sa.select(_NODES.c.hypervisor_type).where(
    _NODES.c.host == sa.bindparam("host"),
    _NODES.c.hypervisor_hostname == sa.bindparam("node"),
    _NODES.c.deleted == 0,
)

_SELECT_AGGREGATES = (
    sa.select(_AGGREGATES.c.name, _AGGREGATES.c.uuid, _ITEMS.c.value)
    .select_from(
        _HOSTS.join(
            _AGGREGATES, _AGGREGATES.c.id == _HOSTS.c.aggregate_id
        ).outerjoin(
            _ITEMS,
            sa.and_(
                _ITEMS.c.aggregate_id == _AGGREGATES.c.id,
                _ITEMS.c.key == "availability_zone",
            ),
        )
    )
    .where(_HOSTS.c.host == sa.bindparam("host"))
    .order_by(_AGGREGATES.c.id)
)


class _Liveness:
    """Nova's own judgement of a service, whichever driver it uses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._api: Any = None

    def is_up(self, service: Mapping[str, Any]) -> bool:
        with self._lock:
            if self._api is None:
                self._api = servicegroup.API()
        return bool(self._api.service_is_up(service))


_LIVENESS = _Liveness()


def _host_up(connection: Any, server: Server) -> Mapping[str, Any]:
    if not server.host:
        return {"server.host_up": None}
    row = connection.execute(_SELECT_SERVICE, {"host": server.host}).first()
    up = row is not None and _LIVENESS.is_up(dict(row._mapping))
    return {"server.host_up": up}


def _hypervisor(connection: Any, server: Server) -> Mapping[str, Any]:
    if not server.host:
        return {"server.hypervisor": None}
    values = {"host": server.host, "node": server.node}
    kind = connection.execute(_SELECT_NODE, values).scalar()
    return {"server.hypervisor": spellings(kind)}


def spellings(kind: str | None) -> Any:
    """Return a hypervisor type as Nova writes it and in small letters."""
    if not kind:
        return None
    return kind if kind == kind.lower() else frozenset({kind, kind.lower()})


def aggregates(connection: Any, server: Server) -> Mapping[str, Any]:
    """Read zone and aggregates of the server's host from the API database.

    The zone is that of the host, as Nova shows it
    (nova.availability_zones); without a host the one that was asked for.
    """
    if not server.host:
        return {
            "server.az": server.availability_zone or None,
            "server.aggregate": frozenset(),
        }
    rows = list(connection.execute(_SELECT_AGGREGATES, {"host": server.host}))
    zones = [row.value for row in rows if row.value]
    return {
        "server.az": (
            zones[0] if zones else nova.conf.CONF.default_availability_zone
        ),
        "server.aggregate": frozenset(
            name for row in rows for name in (row.name, row.uuid) if name
        ),
    }


HOST_UP = Source(frozenset({"server.host_up"}), _host_up)
HYPERVISOR = Source(frozenset({"server.hypervisor"}), _hypervisor)

#: Reads the API database, not the cell's.
AGGREGATES = Source(frozenset({"server.az", "server.aggregate"}), aggregates)
