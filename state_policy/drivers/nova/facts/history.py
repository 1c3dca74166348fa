# SPDX-License-Identifier: Apache-2.0
"""What the instance actions of a server tell of its state, in few rows."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa
from nova.db.main import models

from state_policy.drivers.nova.facts import changing
from state_policy.drivers.nova.server import Server

_TABLE = models.InstanceAction.__table__
_FAULTS = models.InstanceFault.__table__


class Action(NamedTuple):
    """One instance action; ``created`` and ``id`` give their order."""

    name: str
    started: datetime.datetime | None
    request_id: str | None
    message: str | None
    created: datetime.datetime
    id: int


@dataclass(frozen=True, slots=True)
class History:
    """What a server's instance actions tell of its state.

    Never more than an action a name, however many there are: an owner who
    repeats something cannot push out what the clock needs.

    :ivar newest: of each action that changes the state the newest, by name
    :ivar first_delete: the first delete of the present attempt
    """

    newest: Mapping[str, Action] = field(default_factory=dict)
    first_delete: Action | None = None

    def last(self, names: Iterable[str]) -> Action | None:
        """Return the newest action that has one of the names."""
        found = [self.newest[name] for name in names if name in self.newest]
        return max(found, key=_order, default=None)


def _order(action: Action) -> tuple[datetime.datetime, int]:
    # Not the id alone: a move to another cell writes them anew, backwards
    # (nova.conductor.tasks.cross_cell_migrate, 34.0.0).
    return action.created, action.id


_SELECT_FAULT = sa.select(sa.func.max(_FAULTS.c.created_at)).where(
    _FAULTS.c.instance_uuid == sa.bindparam("server"), _FAULTS.c.deleted == 0
)

_COLUMNS = (
    _TABLE.c.action,
    _TABLE.c.start_time,
    _TABLE.c.request_id,
    _TABLE.c.message,
    _TABLE.c.created_at,
    _TABLE.c.id,
)
# By ``instance_uuid_idx``, of which each SELECT has one range.
_OF_SERVER = (
    _TABLE.c.instance_uuid == sa.bindparam("server"),
    _TABLE.c.deleted == 0,
)


def _select_newest() -> Any:
    newest = (
        sa.select(
            _TABLE.c.action, sa.func.max(_TABLE.c.created_at).label("at")
        )
        .where(*_OF_SERVER, _TABLE.c.action.in_(sorted(changing.CHANGING)))
        .group_by(_TABLE.c.action)
        .subquery()
    )
    return (
        sa.select(*_COLUMNS)
        .join(
            newest,
            sa.and_(
                _TABLE.c.action == newest.c.action,
                _TABLE.c.created_at == newest.c.at,
            ),
        )
        .where(*_OF_SERVER)
    )


_SELECT_NEWEST = _select_newest()
#: Before all of Nova, and a date that every database takes.
_LONG_AGO = datetime.datetime(1970, 1, 1)
_DELETES = (*_OF_SERVER, _TABLE.c.action == changing.DELETE)
_FAILED = _TABLE.c.message == "Error"


def load(connection: Any, server_id: str) -> History:
    """Read what tells the state: one SELECT, one more while it is deleted."""
    rows = connection.execute(_SELECT_NEWEST, {"server": server_id})
    newest: dict[str, Action] = {}
    # Of several in one second the last.
    for action in sorted((Action(*row) for row in rows), key=_order):
        newest[action.name] = action
    found = History(newest)
    delete, other = newest.get(changing.DELETE), found.last(changing.OTHERS)
    if delete is None or (
        other is not None and _order(other) > _order(delete)
    ):
        return found
    return History(newest, _first(connection, server_id, delete, other))


def _first(
    connection: Any, server_id: str, newest: Action, other: Action | None
) -> Action:
    """Return the first delete of the attempt that the newest belongs to.

    One that ended in an error is no part of what a later one began.
    """
    failed = (
        sa.select(sa.func.max(_TABLE.c.created_at))
        .where(*_DELETES, _FAILED, _TABLE.c.created_at < newest.created)
        .scalar_subquery()
    )
    began = (
        sa.select(*_COLUMNS)
        .where(
            *_DELETES,
            sa.or_(
                _TABLE.c.message.is_(None),
                sa.not_(_FAILED),
                _TABLE.c.id == newest.id,
            ),
            _TABLE.c.created_at >= sa.func.coalesce(failed, _LONG_AGO),
        )
        .order_by(_TABLE.c.created_at, _TABLE.c.id)
        .limit(1)
    )
    if other is not None:
        began = began.where(_after(other))
    row = connection.execute(began, {"server": server_id}).first()
    return Action(*row) if row else newest


def _after(action: Action) -> Any:
    at = _TABLE.c.created_at
    return sa.or_(
        at > action.created,
        sa.and_(at == action.created, _TABLE.c.id > action.id),
    )


def failed_at(connection: Any, server: Server) -> datetime.datetime | None:
    """Read when a server in ERROR failed last: one SELECT, for those only."""
    if server.vm_state != "error":
        return None
    found: datetime.datetime | None = connection.execute(
        _SELECT_FAULT, {"server": server.uuid}
    ).scalar()
    return found


def tried(connection: Any, server_id: str, history: History) -> int:
    """Count the resets and rungs since the first delete.

    One SELECT, for servers that were asked to go only.
    """
    if history.first_delete is None:
        return 0
    since = sa.select(sa.func.count()).where(
        *_OF_SERVER,
        sa.or_(
            _TABLE.c.action == changing.RESET,
            _TABLE.c.action.startswith("escalate"),
        ),
        _after(history.first_delete),
    )
    found = connection.execute(since, {"server": server_id}).scalar()
    return int(found or 0)
