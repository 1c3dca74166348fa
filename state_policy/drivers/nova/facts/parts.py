# SPDX-License-Identifier: Apache-2.0
"""Facts from what belongs to a server: flavor, volumes, metadata, tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa
from nova.db.main import models

from state_policy.drivers.nova.facts.common import canonical
from state_policy.drivers.nova.facts.source import Source
from state_policy.drivers.nova.server import Server

_EXTRA = models.InstanceExtra.__table__
_VOLUMES = models.BlockDeviceMapping.__table__
_ITEMS = models.InstanceMetadata.__table__
_TAGS = models.Tag.__table__
_MIGRATIONS = models.Migration.__table__
_SERVER: Any = sa.bindparam("server")

_SELECT_FLAVOR = sa.select(_EXTRA.c.flavor).where(
    _EXTRA.c.instance_uuid == _SERVER, _EXTRA.c.deleted == 0
)
_SELECT_VOLUMES = sa.select(_VOLUMES.c.volume_id, _VOLUMES.c.boot_index).where(
    _VOLUMES.c.instance_uuid == _SERVER,
    _VOLUMES.c.destination_type == "volume",
    _VOLUMES.c.deleted == 0,
)
_SELECT_METADATA = sa.select(_ITEMS.c.key, _ITEMS.c.value).where(
    _ITEMS.c.instance_uuid == _SERVER, _ITEMS.c.deleted == 0
)
_SELECT_TAGS = sa.select(_TAGS.c.tag).where(_TAGS.c.resource_id == _SERVER)

#: The statuses of a migration that is over, or waits for its owner
#: (``finished``: a resize to be confirmed).
OVER = (
    "confirmed",
    "reverted",
    "error",
    "failed",
    "completed",
    "cancelled",
    "done",
    "finished",
)
_SELECT_MIGRATIONS = sa.select(_MIGRATIONS.c.migration_type).where(
    _MIGRATIONS.c.instance_uuid == _SERVER,
    _MIGRATIONS.c.deleted == 0,
    _MIGRATIONS.c.status.not_in(OVER),
)


def _flavor(connection: Any, server: Server) -> Mapping[str, Any]:
    text = connection.execute(_SELECT_FLAVOR, {"server": server.uuid}).scalar()
    found = json.loads(text)["cur"]["nova_object.data"] if text else {}
    return {
        "server.flavor": flavor_names(found.get("name"), found.get("flavorid"))
    }


def flavor_names(*names: str | None) -> frozenset[str] | None:
    """Return the names of a flavor, a rule may use either of them."""
    return frozenset(name for name in names if name) or None


def _volumes(connection: Any, server: Server) -> Mapping[str, Any]:
    return volumes(
        connection.execute(_SELECT_VOLUMES, {"server": server.uuid})
    )


def volumes(devices: Iterable[Any]) -> Mapping[str, Any]:
    """Return the facts about volumes from block device mappings of them."""
    found = [(device.volume_id, device.boot_index) for device in devices]
    return {
        "server.volumes": frozenset(canonical(id) for id, _ in found if id),
        "server.volume_backed": any(index == 0 for _, index in found),
    }


def _metadata(connection: Any, server: Server) -> Mapping[str, Any]:
    rows = connection.execute(_SELECT_METADATA, {"server": server.uuid})
    return {"server.metadata": frozenset(f"{r.key}={r.value}" for r in rows)}


def _tags(connection: Any, server: Server) -> Mapping[str, Any]:
    rows = connection.execute(_SELECT_TAGS, {"server": server.uuid})
    return {"server.tag": frozenset(row.tag for row in rows)}


def _migrations(connection: Any, server: Server) -> Mapping[str, Any]:
    rows = connection.execute(_SELECT_MIGRATIONS, {"server": server.uuid})
    # Records from before the column was filled are of resizes.
    kinds = frozenset(row.migration_type or "resize" for row in rows)
    return {"server.migration": kinds or None}


SOURCES = (
    Source(frozenset({"server.flavor"}), _flavor),
    Source(frozenset({"server.volumes", "server.volume_backed"}), _volumes),
    Source(frozenset({"server.metadata"}), _metadata),
    Source(frozenset({"server.tag"}), _tags),
    Source(frozenset({"server.migration"}), _migrations),
)
