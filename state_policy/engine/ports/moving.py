# SPDX-License-Identifier: Apache-2.0
"""What a driver must be able to do so that servers can be moved.

Small steps, each of them idempotent: a step that was done already changes
nothing and returns as if it had been done now. The order of the steps, and
what happens when one of them fails, is the business of
``state_policy.quarantine``.

Texts of records pass through here unread; ``state_policy.quarantine.record``
knows what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from state_policy.engine.ports.reading import Caller


class MovingError(Exception):
    """A step could not be done; trying it again later may help."""


class GoneError(MovingError):
    """The server of a step was deleted meanwhile; a look shows how far."""


class OvertakenError(MovingError):
    """Somebody has gone on with the server since; the step did nothing.

    Its newest record is not the one that the step was to follow.
    """


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a server is: a project and a user, by their ids."""

    project_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class Port:
    """A network port of a server.

    :ivar made_by_compute: True only where it is known that compute made the
        port, so that compute may delete it; any other is its owner's
    """

    id: str
    made_by_compute: bool = False


@dataclass(frozen=True, slots=True)
class Server:
    """What is known of a server, in every store, at one moment.

    :ivar mapped: whose the API database says it is
    :ivar owner: whose its row in the cell says it is
    :ivar hidden: whether the row is out of every list
    :ivar deleted: whether the row is deleted
    :ivar locked_by: ``admin``, ``owner``, or None where it is not locked
    :ivar host_up: None where it has no host
    :ivar volumes: ids of the volumes it has
    :ivar ports: the ports that compute's own cache knows
    :ivar running: names of the operations that have not ended
    :ivar idle: seconds since its newest action began, ours not counted;
        None where it has none
    :ivar record: the newest record of ours, or None
    :ivar recorded_at: when that was written (UTC, naive)
    """

    id: str
    mapped: Owner
    owner: Owner
    hidden: bool = False
    deleted: bool = False
    name: str = ""
    vm_state: str | None = None
    task_state: str | None = None
    launched: bool = False
    locked_by: str | None = None
    protected: bool = False
    host: str | None = None
    host_up: bool | None = None
    volumes: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()
    running: frozenset[str] = frozenset()
    idle: float | None = None
    record: str | None = None
    recorded_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """The servers that are in quarantine, or half way in or out.

    :ivar ids: of the servers
    :ivar unseen: what did not answer, in words (``cell two``)
    """

    ids: tuple[str, ...]
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingDelete:
    """A delete that was accepted and has not ended.

    :ivar sender: who sent it
    :ivar owner: whose the server is
    :ivar operation: ``delete`` or ``force_delete``
    :ivar request_id: of the request that sent it
    :ivar sent: when it was sent (UTC, naive)
    """

    server_id: str
    sender: Owner
    owner: Owner
    operation: str
    request_id: str
    sent: datetime
    locked: bool = False


@dataclass(frozen=True, slots=True)
class Pending:
    """The deletes that were accepted and have not ended.

    :ivar deletes: one a server, the first of the present attempt
    :ivar unseen: what did not answer, in words (``cell two``)
    """

    deletes: tuple[PendingDelete, ...]
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a project uses of what it may use; None where there is no limit."""

    resource: str
    used: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Usages:
    """What a project uses, as it is counted when a server is to come.

    :ivar unseen: what did not answer and may hold more (``cell two``)
    """

    resources: tuple[Usage, ...]
    unseen: tuple[str, ...] = ()


class Looking(Protocol):
    """The half of a mover that changes nothing."""

    def now(self) -> datetime:
        """Return the time, UTC, naive."""

    def look(self, server_id: str) -> Server | None:
        """Return what is known of a server now; None where it is unknown.

        :raises MovingError: where its cell does not answer
        """

    def newest_record(self, server_id: str) -> str | None:
        """Return the newest record of a server now, or None: a short look.

        :raises GoneError: where it has been archived
        """

    def held(self, projects: Sequence[str]) -> Listing:
        """Return every server that is, or may be, in quarantine.

        Those whose mapping or row belongs to one of the projects and that
        are not gone, and those that a record of ours hides.
        """

    def pending_deletes(
        self, projects: Sequence[str], older_than: float
    ) -> Pending:
        """Return deletes that have been accepted for so many seconds.

        Servers of the given projects are left out.
        """

    def moved_within(self, projects: Sequence[str], seconds: float) -> int:
        """Return how many servers came to the projects in that time.

        Those that have been deleted since do not count.
        """

    def overdue(self, projects: Sequence[str], seconds: float) -> bool:
        """Return whether a server has been concealed for longer."""

    def no_headroom(self, server_id: str, target: Owner) -> str | None:
        """Return why the target cannot take the server, None where it can."""

    def usages(self, project_id: str) -> Usages:
        """Return what a project uses of its limits."""

    def bound_ports(self, server_id: str) -> Mapping[str, str]:
        """Return the ports that the network service gives it.

        :returns: from their ids to the projects they belong to
        """

    def consumer(self, server_id: str) -> Owner | None:
        """Return who is charged for its resources; None where nobody is."""

    def group_broken(self, server_id: str, group: str) -> str | None:
        """Return what is wrong with its being a member of a group again.

        :returns: in words, the server being `it`; None where nothing is
        """

    def caller_for(self, owner: Owner, request_id: str) -> Caller:
        """Return a caller with the rights of a plain member, no more."""


class Mover(Looking, Protocol):
    """Moves servers between projects, one small step at a time.

    A server may be deleted at any moment, and so beside any step: each may
    raise :class:`GoneError`. Somebody else may go on with it at any moment
    too: steps that are given the record that they follow raise
    :class:`OvertakenError` where it is not the newest any more.
    """

    def prepare(self) -> None:
        """Make ahead what the first move would need time to make."""

    def conceal_row(
        self,
        server: Server,
        to: Owner,
        record: str,
        request_id: str | None,
    ) -> bool:
        """Hide and lock the row, and write the record, or do neither.

        :param server: as it was seen; a row that is hidden, deleted, locked
            or in another state by now is left alone
        :param to: whose it will be; its owner sees nothing that names it
        :param request_id: of the request; None to make one up
        :returns: whether this call did it
        """

    def group_of(self, server_id: str) -> str | None:
        """Return the id of the server group it is a member of."""

    def give(
        self,
        server_id: str,
        to: Owner,
        *,
        leave_group: bool = False,
        join_group: str | None = None,
        deleted: bool = False,
    ) -> None:
        """Make the API database name another owner, in one transaction.

        :param leave_group: take it out of its server group too
        :param join_group: make it a member of this one, if it still exists
        :param deleted: whether the server is gone or going
        """

    def charge(self, server_id: str, to: Owner) -> None:
        """Name another owner of the resources it holds."""

    def release_ports(
        self,
        server_id: str,
        made_by_compute: Sequence[str],
        record: str | None,
        only: Collection[str] | None = None,
    ) -> None:
        """Unbind its ports; delete only those that compute made.

        :param record: the newest; looked at before each port
        :param only: the ports to take; all by default
        :raises MovingError: where one of them is still bound afterwards
        """

    def close_consoles(self, server_id: str) -> None:
        """Take the tokens of open consoles back."""

    def settle_row(self, server: Server, to: Owner, record: str) -> bool:
        """Give the row to another owner and show it again, with the record.

        :param server: as it was seen, with its newest record
        :returns: whether this call did it
        """

    def show_deleted_row(self, server_id: str) -> None:
        """Un-hide a row that was deleted, so that compute cleans up."""

    def return_row(
        self, server_id: str, to: Owner, locked_by: str | None, record: str
    ) -> None:
        """Give the row back, shown, and locked as it was before.

        A row that is back, shown in the owner's project, is left alone.

        :param record: the newest, in the same transaction
        """

    def write_record(
        self, server_id: str, owner: Owner, record: str, after: str | None
    ) -> None:
        """Write a record; the newest is the one that counts.

        :param owner: who may know of it: the owner it had, or has
        :param after: the newest before it, in the same transaction
        """

    def delete(self, server_id: str, by: Owner, record: str) -> None:
        """Delete it as an administrator of the project would.

        :param record: the newest
        :raises GoneError: where it is deleted already
        :raises OvertakenError: where its row is not the project's
        """

    def reset_state(self, server_id: str, by: Owner, record: str) -> None:
        """Set it to error, with no task.

        :param record: the newest
        :raises GoneError: where it is deleted
        :raises OvertakenError: where its row is not the project's
        """

    def notify(self, event: str, payload: Mapping[str, Any]) -> None:
        """Send a notification; never raises."""

    def deliver_events(
        self, server_id: str, events: Sequence[Mapping[str, Any]]
    ) -> None:
        """Hand external events to the host of a server.

        :param events: as in a request to ``os-server-external-events``
        :raises MovingError: where it has no host
        """

    def within(
        self, seconds: float, steps: Mapping[str, Callable[[], None]]
    ) -> tuple[str, ...]:
        """Run steps one after the other, but return in time.

        A step that fails does not keep the next from being run; what has
        not ended in time goes on behind. Never raises.

        :param steps: what to do, by name
        :returns: names of the steps that did not end in time, or failed
        """
