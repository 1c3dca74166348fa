# SPDX-License-Identifier: Apache-2.0
"""A mover in memory, whose process can die at any step.

Each store is a mapping of its own, and each step touches one store, as the
stores of a cloud have no transaction in common.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from state_policy.engine.ports.moving import (
    GoneError,
    Listing,
    OvertakenError,
    Owner,
    Pending,
    PendingDelete,
    Server,
    Usage,
    Usages,
)
from state_policy.engine.ports.reading import Caller
from state_policy.quarantine.record import RecordError, load

START = datetime(2026, 1, 1)

OWNER = Owner("owner-project", "owner")
KEEPER = Owner("quarantine-project", "keeper")


@dataclass(frozen=True)
class Policy:
    """Settings of the quarantine."""

    enabled: bool = True
    projects: tuple[str, ...] = (KEEPER.project_id,)
    user: str | None = KEEPER.user_id
    on_full: str = "plain_delete"
    on_volumes: str = "plain_delete"
    on_ports: str = "release"
    retention: int = 14 * 86400
    deadline: int = 12 * 3600
    max_per_hour: int = 100
    excluded_projects: tuple[str, ...] = ()
    request_budget: float = 1.0
    settle_after: int = 60


class DeathError(BaseException):
    """The process dies. Nothing may catch it, so it is no Exception."""


class StoreError(Exception):
    """A store does not take what it is told."""


@dataclass
class Memory:
    """Servers in memory.

    :ivar row: the rows of the cell; what the other stores say is beside them
    :ivar fail_at: number of the step at which ``failure`` is raised, before
        the step has an effect; steps are counted in ``steps``
    """

    row: dict[str, Server] = field(default_factory=dict)
    mapping: dict[str, Owner] = field(default_factory=dict)
    gone: dict[str, bool] = field(default_factory=dict)
    consumers: dict[str, Owner] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    ports: dict[str, frozenset[str]] = field(default_factory=dict)
    port_projects: dict[str, str] = field(default_factory=dict)
    records: list[tuple[str, str]] = field(default_factory=list)
    told: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    deleted_ports: list[str] = field(default_factory=list)
    pending: tuple[PendingDelete, ...] = ()
    unseen: tuple[str, ...] = ()
    full: frozenset[str] = frozenset()
    wrong: str | None = None
    moved: int = 0
    late: bool = False
    time: datetime = START
    steps: list[str] = field(default_factory=list)
    fail_at: int | None = None
    failure: Callable[[], BaseException] = DeathError

    def add(self, server_id: str, **more: Any) -> None:
        """Put a server of the owner's there, consistent in every store."""
        values: dict[str, Any] = {
            "vm_state": "active",
            "host": "host",
            "host_up": True,
            "launched": True,
            "idle": 3600.0,
        }
        self.row[server_id] = Server(
            server_id, OWNER, OWNER, **{**values, **more}
        )
        self.mapping[server_id] = OWNER
        self.consumers[server_id] = OWNER
        self.ports[server_id] = frozenset(
            port.id for port in self.row[server_id].ports
        )

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self.time += timedelta(seconds=seconds)

    def step(self, name: str) -> None:
        """Count a step, and fail at it where that is wanted."""
        self.steps.append(name)
        if self.fail_at is not None and len(self.steps) > self.fail_at:
            self.fail_at = None
            raise self.failure()

    def set(self, server_id: str, **values: Any) -> None:
        """Change a row."""
        self.row[server_id] = replace(self.row[server_id], **values)

    # looking

    def now(self) -> datetime:
        return self.time

    def look(self, server_id: str) -> Server | None:
        found = self.row.get(server_id)
        if found is None:
            return None
        record = self.newest_record(server_id)
        return replace(
            found,
            mapped=self.mapping[server_id],
            record=record,
            recorded_at=_time_of(record),
        )

    def newest_record(self, server_id: str) -> str | None:
        texts = [text for one, text in self.records if one == server_id]
        return texts[-1] if texts else None

    def held(self, projects: Sequence[str]) -> Listing:
        ids = [
            server_id
            for server_id, row in self.row.items()
            if row.hidden
            or self.mapping[server_id].project_id in projects
            or row.owner.project_id in projects
        ]
        gone = {
            i
            for i in ids
            if self.row[i].deleted
            and not self.row[i].hidden
            and self.row[i].owner.project_id in projects
        }
        return Listing(tuple(i for i in ids if i not in gone), self.unseen)

    def pending_deletes(
        self, projects: Sequence[str], older_than: float
    ) -> Pending:
        return Pending(self.pending, self.unseen)

    def moved_within(self, projects: Sequence[str], seconds: float) -> int:
        return self.moved

    def overdue(self, projects: Sequence[str], seconds: float) -> bool:
        return self.late

    def no_headroom(self, server_id: str, target: Owner) -> str | None:
        return "full" if target.project_id in self.full else None

    def usages(self, project_id: str) -> Usages:
        return Usages((Usage("instances", 1, 10),))

    def bound_ports(self, server_id: str) -> Mapping[str, str]:
        return {
            port: self.port_projects.get(port, OWNER.project_id)
            for port in self.ports[server_id]
        }

    def consumer(self, server_id: str) -> Owner | None:
        return self.consumers.get(server_id)

    def group_broken(self, server_id: str, group: str) -> str | None:
        return self.wrong

    def caller_for(self, owner: Owner, request_id: str) -> Caller:
        return Caller(
            {
                "project_id": owner.project_id,
                "user_id": owner.user_id,
                "roles": ["member", "reader"],
                "is_admin": False,
            },
            request_id,
        )

    def group_of(self, server_id: str) -> str | None:
        return self.groups.get(server_id)

    # moving

    def conceal_row(
        self,
        server: Server,
        to: Owner,
        record: str,
        request_id: str | None,
    ) -> bool:
        self.step("conceal_row")
        row = self.row[server.id]
        if row.hidden or row.deleted or not _same(row, server):
            return False
        self.set(server.id, hidden=True, locked_by="admin")
        self.records.append((server.id, record))
        return True

    def give(
        self,
        server_id: str,
        to: Owner,
        *,
        leave_group: bool = False,
        join_group: str | None = None,
        deleted: bool = False,
    ) -> None:
        self.step("give")
        self.mapping[server_id] = to
        self.gone[server_id] = deleted
        if leave_group:
            self.groups.pop(server_id, None)
        if join_group is not None:
            self.groups[server_id] = join_group

    def charge(self, server_id: str, to: Owner) -> None:
        self.step("charge")
        if server_id in self.consumers:
            self.consumers[server_id] = to

    def release_ports(
        self,
        server_id: str,
        made_by_compute: Sequence[str],
        record: str | None,
        only: Collection[str] | None = None,
    ) -> None:
        self.step("release_ports")
        self._follow(server_id, record)
        bound = self.ports[server_id]
        taken = bound if only is None else bound & frozenset(only)
        self.deleted_ports += [
            port for port in taken if port in made_by_compute
        ]
        self.ports[server_id] = bound - taken

    def close_consoles(self, server_id: str) -> None:
        self.step("close_consoles")

    def settle_row(self, server: Server, to: Owner, record: str) -> bool:
        self.step("settle_row")
        row = self.row[server.id]
        if not row.hidden or row.deleted or not _same(row, server):
            return False
        self._follow(server.id, server.record)
        self.set(server.id, owner=to, hidden=False)
        self.records.append((server.id, record))
        return True

    def show_deleted_row(self, server_id: str) -> None:
        self.step("show_deleted_row")
        if self.row[server_id].deleted:
            self.set(server_id, hidden=False)

    def return_row(
        self, server_id: str, to: Owner, locked_by: str | None, record: str
    ) -> None:
        self.step("return_row")
        row = self.row[server_id]
        if not row.hidden and row.owner.project_id == to.project_id:
            return
        self._follow(server_id, record)
        self.set(server_id, owner=to, hidden=False, locked_by=locked_by)

    def write_record(
        self, server_id: str, owner: Owner, record: str, after: str | None
    ) -> None:
        self.step("write_record")
        self._follow(server_id, after)
        self.records.append((server_id, record))

    def delete(self, server_id: str, by: Owner, record: str) -> None:
        self.step("delete")
        self._expect(server_id, by)
        self._follow(server_id, record)
        if self.row[server_id].task_state == "deleting":
            return  # ignored, as compute does
        self.set(server_id, deleted=True, vm_state="deleted")
        self.consumers.pop(server_id, None)

    def reset_state(self, server_id: str, by: Owner, record: str) -> None:
        self.step("reset_state")
        self._expect(server_id, by)
        self._follow(server_id, record)
        self.set(server_id, vm_state="error", task_state=None)

    def _follow(self, server_id: str, record: str | None) -> None:
        if self.newest_record(server_id) != record:
            raise OvertakenError("somebody has gone on with it")

    def _expect(self, server_id: str, owner: Owner) -> None:
        if self.row[server_id].deleted:
            raise GoneError("it is deleted by now")
        if self.row[server_id].owner != owner:
            raise OvertakenError("it has another owner by now")

    def notify(self, event: str, payload: Mapping[str, Any]) -> None:
        self.told.append((event, payload))

    def deliver_events(
        self, server_id: str, events: Sequence[Mapping[str, Any]]
    ) -> None:
        self.step("deliver_events")

    def prepare(self) -> None:
        """Nothing has to be made ahead."""

    def within(
        self, seconds: float, steps: Mapping[str, Callable[[], None]]
    ) -> tuple[str, ...]:
        left = []
        for name, act in steps.items():
            try:
                act()
            except Exception:
                left.append(name)
        return tuple(left)


def _time_of(record: str | None) -> datetime | None:
    """Return when a record was written; an unreadable one at the start."""
    if record is None:
        return None
    try:
        return load(record).at
    except RecordError:
        return START


def _same(row: Server, seen: Server) -> bool:
    return (row.owner, row.vm_state, row.task_state) == (
        seen.owner,
        seen.vm_state,
        seen.task_state,
    )
