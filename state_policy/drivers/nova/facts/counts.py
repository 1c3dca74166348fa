# SPDX-License-Identifier: Apache-2.0
"""Counts over many servers, each one indexed query, kept for a second."""

from __future__ import annotations

import datetime
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from nova.db.api import models as api_models
from nova.db.main import models
from nova.objects import cell_mapping

from state_policy.drivers.nova import cells
from state_policy.drivers.nova.cells import Cell, Cells
from state_policy.drivers.nova.facts.source import now

_MAPPINGS = api_models.InstanceMapping.__table__
_CELLS = api_models.CellMapping.__table__
_SERVERS = models.Instance.__table__

DELETES = "project.deletes:"
STUCK = "cloud.stuck"

#: Seconds for which a count is kept.
KEPT = 1.0

#: A server that has been in one of these for STUCK_AFTER seconds is stuck.
STUCK_IN = (
    "scheduling",
    "block_device_mapping",
    "networking",
    "spawning",
    "deleting",
    "soft-deleting",
)
STUCK_AFTER = 900

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_SELECT_DELETES = (
    sa.select(sa.func.count())
    .select_from(_MAPPINGS)
    .where(
        _MAPPINGS.c.project_id == sa.bindparam("project"),
        _MAPPINGS.c.queued_for_delete == sa.true(),
        _MAPPINGS.c.updated_at > sa.bindparam("since"),
    )
)
_SELECT_CELLS = sa.select(
    _CELLS.c.id,
    _CELLS.c.uuid,
    _CELLS.c.name,
    _CELLS.c.database_connection,
    _CELLS.c.transport_url,
    _CELLS.c.disabled,
).where(_CELLS.c.uuid != cell_mapping.CellMapping.CELL0_UUID)
_SELECT_STUCK = (
    sa.select(sa.func.count())
    .select_from(_SERVERS)
    .where(
        _SERVERS.c.task_state.in_(STUCK_IN),
        _SERVERS.c.updated_at < sa.bindparam("before"),
        _SERVERS.c.deleted == 0,
    )
)


class Counts:
    """Counts what is asked for, the same at most once a second."""

    def __init__(self, reader: Cells) -> None:
        self._cells = reader
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[float, int]] = {}

    def deletes(self, project_id: str, key: str) -> int:
        """Count a project's recent deletes.

        :param key: the fact, ``project.deletes:10m``
        :raises ValueError: the window cannot be read
        """
        seconds = window(key)
        return self._keep(
            (key, project_id), lambda: _deletes(project_id, seconds)
        )

    def stuck(self) -> int:
        """Count the servers stuck in building or deleting, in all cells.

        :raises Exception: where a cell does not answer; a count without it
            would be too low
        """
        return self._keep((STUCK, ""), self._stuck)

    def _stuck(self) -> int:
        found = cells.read_api(
            lambda connection: list(connection.execute(_SELECT_CELLS))
        )
        answers = self._cells.each(
            [Cell(*row).mapping() for row in found if not row.disabled],
            lambda context: cells.connected(context, _count_stuck),
        )
        for error in answers.failed.values():
            raise error
        return sum(answers.found.values())

    def _keep(self, key: tuple[str, str], count: Callable[[], int]) -> int:
        moment = time.monotonic()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and moment - kept[0] < KEPT:
                return kept[1]
        # Not under the lock: one slow database must not hold all workers.
        found = count()
        with self._lock:
            for old in [
                k for k, (at, _) in self._kept.items() if moment - at >= KEPT
            ]:
                del self._kept[old]
            self._kept[key] = (moment, found)
        return found


def window(key: str) -> int:
    """Return the seconds in the name of a fact, ``project.deletes:10m``.

    :raises ValueError: where there are none
    """
    found = re.fullmatch(r"(\d+)([smhd])", key.removeprefix(DELETES))
    if found is None:
        raise ValueError(f"no window of time in {key}")
    return int(found[1]) * _UNITS[found[2]]


def _deletes(project_id: str, seconds: int) -> int:
    values = {
        "project": project_id,
        "since": now() - datetime.timedelta(seconds=seconds),
    }
    return cells.read_api(
        lambda connection: int(
            connection.execute(_SELECT_DELETES, values).scalar() or 0
        )
    )


def _count_stuck(connection: Any) -> int:
    before = now() - datetime.timedelta(seconds=STUCK_AFTER)
    found = connection.execute(_SELECT_STUCK, {"before": before}).scalar()
    return int(found or 0)


__all__ = ["DELETES", "STUCK", "Counts", "window"]
