# SPDX-License-Identifier: Apache-2.0
"""What is done in the database of a server's cell.

Each function is one transaction. Nova's own compare-and-swap
(``Instance.save(expected_task_state=...)``) does not exclude two writers from
each other, so the row is changed by an UPDATE whose conditions are in its
WHERE, and whoever changes no row has lost. Who writes a record, or goes by
one, changes the row first: so the database has one of them wait for the other,
and what is looked up then is what the other has left.

Tables and columns: nova.db.main.models, 34.0.0.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_context import context as oslo_context
from oslo_db import api as oslo_db_api
from oslo_utils import timeutils

from state_policy.drivers.nova.moving import migrations
from state_policy.engine.ports.moving import (
    GoneError,
    OvertakenError,
    Owner,
    Server,
)

#: The instance action under which records are kept, as its owner sees it.
ACTION = "quarantine"
#: The event that holds a record. Other events may end up at the same action,
#: so a record is looked up by this name.
EVENT = "state_policy_record"
#: Nova's API fails on an event without a host.
HOST = "state-policy"

_ROW = models.Instance


def _retried(function: Any) -> Any:
    return oslo_db_api.wrap_db_retry(max_retries=5, retry_on_deadlock=True)(
        function
    )


def _writer(cell: Any) -> Any:
    return main_db.get_context_manager(cell).writer.using(cell)


def _is(column: Any, value: Any) -> Any:
    return column.is_(None) if value is None else column == value


def _shown() -> Any:
    return sa.or_(_ROW.hidden.is_(None), _ROW.hidden == sa.false())


def _locked_as(server: Server) -> Any:
    """Return the condition that a row is locked, or not, as it was seen."""
    if server.locked_by is not None:
        return _ROW.locked == sa.true()
    return sa.or_(_ROW.locked.is_(None), _ROW.locked == sa.false())


def _update(cell: Any, server_id: str, *where: Any, **values: Any) -> bool:
    """Change a row; the time of the change is not set by itself."""
    statement = (
        sa.update(_ROW)
        .where(_ROW.uuid == server_id, *where)
        .values(updated_at=timeutils.utcnow(), **values)
        .execution_options(synchronize_session=False)
    )
    return bool(cell.session.execute(statement).rowcount == 1)


@_retried
def conceal(
    cell: Any, server: Server, to: Owner, record: str, request_id: str | None
) -> bool:
    """Hide and lock a row that is as it was seen, and write the record."""
    with _writer(cell):
        won = _update(
            cell,
            server.id,
            _shown(),
            _ROW.deleted == 0,
            _ROW.project_id == server.owner.project_id,
            _is(_ROW.vm_state, server.vm_state),
            _is(_ROW.task_state, server.task_state),
            _locked_as(server),
            hidden=True,
            locked=True,
            locked_by="admin",
        )
        if won:
            action_id = _insert_record(
                cell, server.id, server.owner, record, request_id
            )
            _take_migrations(cell, server, to, action_id)
        return won


@_retried
def settle(cell: Any, server: Server, to: Owner, record: str) -> bool:
    """Give a concealed row to another owner, show it, write the record."""
    with _writer(cell):
        won = _update(
            cell,
            server.id,
            _ROW.hidden == sa.true(),
            _ROW.deleted == 0,
            _ROW.project_id == server.owner.project_id,
            _is(_ROW.vm_state, server.vm_state),
            _is(_ROW.task_state, server.task_state),
            project_id=to.project_id,
            user_id=to.user_id,
            hidden=False,
        )
        if won:
            expect(cell, server.id, server.record)
            action_id = _insert_record(cell, server.id, server.owner, record)
            _take_migrations(cell, server, to, action_id)
        return won


@_retried
def give_back(
    cell: Any, server_id: str, to: Owner, locked_by: str | None, record: str
) -> None:
    """Give a row back to its owner, shown, and locked as it was.

    What is back already is left alone: whoever ended the release before has
    told its owner so, who may have locked it since.

    :param record: the newest
    """
    with _writer(cell):
        given = _update(
            cell,
            server_id,
            sa.or_(_ROW.hidden == sa.true(), _ROW.project_id != to.project_id),
            project_id=to.project_id,
            user_id=to.user_id,
            hidden=False,
            locked=locked_by is not None,
            locked_by=locked_by,
        )
        if given:
            expect(cell, server_id, record)
            migrations.give_back(cell, server_id, to.project_id)


@_retried
def show_deleted(cell: Any, server_id: str) -> None:
    """Show a deleted row: compute's periodic clean-up passes hidden ones."""
    with _writer(cell):
        _update(cell, server_id, _ROW.deleted != 0, hidden=False)


@_retried
def write_record(
    cell: Any, server_id: str, owner: Owner, record: str, after: str | None
) -> None:
    """Write a record.

    :param after: the newest so far
    """
    with _writer(cell):
        if not _update(cell, server_id):
            raise GoneError(f"server {server_id} has been archived")
        expect(cell, server_id, after)
        _insert_record(cell, server_id, owner, record)


def expect(cell: Any, server_id: str, record: str | None) -> None:
    """Go on only where a record is the newest, or there is none.

    In a transaction that has changed the row before, nobody writes another
    one until it ends.

    :raises OvertakenError: where it is not
    """
    found = newest_record(cell, server_id)
    if (found[0] if found else None) != record:
        raise OvertakenError(f"somebody has gone on with server {server_id}")


def _insert_record(
    cell: Any,
    server_id: str,
    owner: Owner,
    record: str,
    request_id: str | None = None,
) -> int:
    """Insert an action of the owner's and its event, which holds the record.

    The action names nobody but the owner, who can read it. The record is
    where Nova keeps tracebacks, which only administrators read by default.

    It is never older than the newest so far, whatever the clock of the host
    that wrote that one says: of two of one time the later id counts.

    :returns: id of the action
    """
    now = timeutils.utcnow()
    before = newest_record(cell, server_id)
    at = now if before is None else max(now, before[1])
    action = models.InstanceAction()
    action.update(
        {
            "action": ACTION,
            "instance_uuid": server_id,
            "request_id": request_id or oslo_context.generate_request_id(),
            "project_id": owner.project_id,
            "user_id": owner.user_id,
            "start_time": now,
            "updated_at": now,
        }
    )
    action.save(cell.session)
    _insert_event(cell, action.id, EVENT, record, at)
    return int(action.id)


def _take_migrations(
    cell: Any, server: Server, to: Owner, action_id: int
) -> None:
    taken = migrations.take(
        cell, server.id, server.owner.project_id, to.project_id
    )
    for text in taken:
        _insert_event(
            cell, action_id, migrations.EVENT, text, timeutils.utcnow()
        )


def _insert_event(
    cell: Any, action_id: int, name: str, text: str, at: datetime
) -> None:
    event = models.InstanceActionEvent()
    event.update(
        {
            "event": name,
            "action_id": action_id,
            "start_time": at,
            "finish_time": at,
            "result": "Success",
            "host": HOST,
            "traceback": text,
        }
    )
    event.save(cell.session)


def newest_record(cell: Any, server_id: str) -> tuple[str, Any] | None:
    """Return the newest record of a server and its time.

    The newest by time: a move to another cell writes them anew, backwards,
    and their ids with them (nova.conductor.tasks.cross_cell_migrate, 34.0.0).
    """
    action, event = models.InstanceAction, models.InstanceActionEvent
    found = _one(
        cell,
        sa.select(event.traceback, event.start_time)
        .join(action, action.id == event.action_id)
        .where(action.instance_uuid == server_id, event.event == EVENT)
        .order_by(event.start_time.desc(), event.id.desc())
        .limit(1),
    )
    return (found[0], found[1]) if found else None


def unfinished(cell: Any, server_id: str) -> tuple[str, ...]:
    """Return the names of the events that have begun and not ended."""
    action, event = models.InstanceAction, models.InstanceActionEvent
    query = (
        sa.select(event.event)
        .join(action, action.id == event.action_id)
        .where(action.instance_uuid == server_id, event.finish_time.is_(None))
    )
    return tuple(sorted({name for (name,) in select(cell, query)}))


def actions(cell: Any, server_id: str) -> list[Any]:
    """Return a server's actions but ours, the newest first.

    :returns: rows with action, project_id, user_id, request_id, start_time
    """
    action = models.InstanceAction
    return select(
        cell,
        sa.select(
            action.action,
            action.project_id,
            action.user_id,
            action.request_id,
            action.start_time,
        )
        .where(action.instance_uuid == server_id, action.action != ACTION)
        .order_by(action.created_at.desc(), action.id.desc()),
    )


def select(cell: Any, query: Any) -> list[Any]:
    """Return all rows of a query in a transaction of its own."""
    with main_db.get_context_manager(cell).reader.using(cell):
        return list(cell.session.execute(query).all())


def _one(cell: Any, query: Any) -> Any | None:
    found = select(cell, query)
    return found[0] if found else None
