# SPDX-License-Identifier: Apache-2.0
"""The mover of Nova: each method is one step."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import oslo_messaging
from nova import objects, rpc
from nova.compute import api as compute_api
from nova.compute import instance_actions
from oslo_utils import timeutils

from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.moving import (
    contexts,
    finding,
    groups,
    headroom,
    registry,
    rows,
    seeing,
    surroundings,
)
from state_policy.drivers.nova.moving.budget import Budget
from state_policy.engine.ports.moving import (
    Listing,
    MovingError,
    OvertakenError,
    Owner,
    Pending,
    Server,
    Usages,
)
from state_policy.engine.ports.reading import Caller

LOG = logging.getLogger(__name__)

#: Seconds that counting what the quarantine project uses may take: placement
#: or all cells, each in its own budget, are asked for it.
COUNTING = 10.0

#: A notification is not worth waiting for a broken message bus.
_NOTIFY_TRIES = 2


class Mover:
    """Moves servers of the Nova whose configuration this process has read.

    Nova's objects have to be registered (``nova.objects.register_all``).

    :param compute: Nova's compute API, where the process has one already
    :param cells: reads cells; shared with whoever reads facts, so that both
        know which of them are down
    """

    def __init__(
        self, compute: Any = None, cells: Cells | None = None
    ) -> None:
        self._compute = compute
        self._cells = cells or Cells()
        self._lock = threading.Lock()
        self._budget = Budget()

    @property
    def compute(self) -> Any:
        """Return Nova's compute API; it takes over a second to make."""
        with self._lock:
            if self._compute is None:
                self._compute = compute_api.API()
            return self._compute

    def prepare(self) -> None:
        """Make Nova's compute API now, not on the first move's time."""
        _ = self.compute

    # looking

    def now(self) -> datetime:
        """Return the time, UTC, naive."""
        found: datetime = timeutils.utcnow()
        return found

    def look(self, server_id: str) -> Server | None:
        """Return what is known of a server now."""
        return seeing.look(self._cells, server_id)

    def newest_record(self, server_id: str) -> str | None:
        """Return the newest record of a server now."""
        with contexts.cell_of(server_id) as cell:
            found = rows.newest_record(cell, server_id)
        return found[0] if found else None

    def held(self, projects: Sequence[str]) -> Listing:
        """Return every server that is, or may be, in quarantine."""
        return finding.held(self._cells, projects)

    def pending_deletes(
        self, projects: Sequence[str], older_than: float
    ) -> Pending:
        """Return deletes that were accepted so long ago and have not ended."""
        return finding.pending_deletes(self._cells, projects, older_than)

    def moved_within(self, projects: Sequence[str], seconds: float) -> int:
        """Return how many servers came to the projects in that time."""
        return registry.changed_within(tuple(projects), seconds)

    def overdue(self, projects: Sequence[str], seconds: float) -> bool:
        """Return whether a server has been concealed for longer."""
        return finding.overdue(self._cells, projects, seconds)

    def no_headroom(self, server_id: str, target: Owner) -> str | None:
        """Return why the target cannot take the server."""
        return self._budget.call(
            COUNTING, lambda: headroom.lacking(self._cells, server_id, target)
        )

    def usages(self, project_id: str) -> Usages:
        """Return what a project uses of its limits."""
        return headroom.usages(self._cells, project_id)

    def bound_ports(self, server_id: str) -> Mapping[str, str]:
        """Return the ports that Neutron gives to a server, with projects."""
        return surroundings.bound_ports(server_id)

    def consumer(self, server_id: str) -> Owner | None:
        """Return who is charged for a server's resources."""
        return surroundings.consumer(server_id)

    def group_of(self, server_id: str) -> str | None:
        """Return the id of the server group it is a member of."""
        return registry.group_of(server_id)

    def group_broken(self, server_id: str, group: str) -> str | None:
        """Return what is wrong with its being a member of a group again."""
        return groups.broken(self._cells, server_id, group)

    def caller_for(self, owner: Owner, request_id: str) -> Caller:
        """Return a caller with the rights of a plain member."""
        context = contexts.member(owner)
        return Caller(context.to_policy_values(), request_id, context)

    # moving

    def conceal_row(
        self,
        server: Server,
        to: Owner,
        record: str,
        request_id: str | None,
    ) -> bool:
        """Hide and lock the row, and write the record, or do neither."""
        with contexts.cell_of(server.id) as cell:
            return bool(rows.conceal(cell, server, to, record, request_id))

    def give(
        self,
        server_id: str,
        to: Owner,
        *,
        leave_group: bool = False,
        join_group: str | None = None,
        deleted: bool = False,
    ) -> None:
        """Name another owner in the API database, in one transaction."""
        registry.give(server_id, to, leave_group, join_group, deleted)

    def charge(self, server_id: str, to: Owner) -> None:
        """Name another owner of the resources it holds."""
        surroundings.charge(server_id, to)

    def release_ports(
        self,
        server_id: str,
        made_by_compute: Sequence[str],
        record: str | None,
        only: Collection[str] | None = None,
    ) -> None:
        """Unbind its ports; delete only those that Nova made."""
        surroundings.release_ports(
            self.compute.network_api, server_id, made_by_compute, record, only
        )

    def close_consoles(self, server_id: str) -> None:
        """Take the tokens of open consoles back."""
        surroundings.close_consoles(server_id)

    def settle_row(self, server: Server, to: Owner, record: str) -> bool:
        """Give the row to another owner and show it again."""
        with contexts.cell_of(server.id) as cell:
            return bool(rows.settle(cell, server, to, record))

    def show_deleted_row(self, server_id: str) -> None:
        """Un-hide a row that was deleted, so that compute cleans up."""
        with contexts.cell_of(server_id) as cell:
            rows.show_deleted(cell, server_id)

    def return_row(
        self, server_id: str, to: Owner, locked_by: str | None, record: str
    ) -> None:
        """Give the row back, shown, and locked as it was before."""
        with contexts.cell_of(server_id) as cell:
            rows.give_back(cell, server_id, to, locked_by, record)

    def write_record(
        self, server_id: str, owner: Owner, record: str, after: str | None
    ) -> None:
        """Write a record after another."""
        with contexts.cell_of(server_id) as cell:
            rows.write_record(cell, server_id, owner, record, after)

    # what Nova does when asked

    def delete(self, server_id: str, by: Owner, record: str) -> None:
        """Delete it as an administrator of the project would, for good."""
        context = contexts.acting(by)
        with contexts.gone(server_id):
            instance = self.compute.get(context, server_id)
            _expect(instance, by)
            with contexts.cell_of(server_id) as cell:
                rows.expect(cell, server_id, record)
            self.compute.delete(context, instance)

    def reset_state(self, server_id: str, by: Owner, record: str) -> None:
        """Set it to error with no task, as ``os-resetState`` does."""
        with contexts.cell_of(server_id, contexts.acting(by)) as cell:
            instance = objects.Instance.get_by_uuid(cell, server_id)
            _expect(instance, by)
            rows.expect(cell, server_id, record)
            action = objects.InstanceAction.action_start(
                cell, server_id, instance_actions.RESET_STATE
            )
            instance.vm_state = "error"
            instance.task_state = None
            instance.save(admin_state_reset=True)
            action.finish()

    def deliver_events(
        self, server_id: str, events: Sequence[Mapping[str, Any]]
    ) -> None:
        """Hand external events to the host of a server."""
        context = contexts.admin("no")
        with contexts.gone(server_id):
            instance = self._cells.call(
                contexts.cell_mapping_of(server_id),
                lambda cell: objects.Instance.get_by_uuid(
                    cell, server_id, expected_attrs=["migration_context"]
                ),
                context,
            )
        if not instance.host:
            raise MovingError(f"server {server_id} has no host")
        self.compute.external_instance_event(
            context, [instance], [_event(server_id, e) for e in events]
        )

    def notify(self, event: str, payload: Mapping[str, Any]) -> None:
        """Send a notification; never raises."""
        try:
            oslo_messaging.Notifier(
                rpc.NOTIFICATION_TRANSPORT,
                publisher_id="state_policy",
                retry=_NOTIFY_TRIES,
            ).info({}, event, dict(payload))
        except Exception:
            LOG.warning("notification %s was not sent", event, exc_info=True)

    def within(
        self, seconds: float, steps: Mapping[str, Callable[[], None]]
    ) -> tuple[str, ...]:
        """Run steps one after the other, but return in time."""
        return self._budget.run(seconds, steps)


def _expect(instance: Any, owner: Owner) -> None:
    """Refuse to touch a server that has gone back to somebody else."""
    if instance.project_id != owner.project_id:
        raise OvertakenError(f"server {instance.uuid} has another owner")


def _event(server_id: str, event: Mapping[str, Any]) -> Any:
    return objects.InstanceExternalEvent(
        instance_uuid=server_id,
        name=event["name"],
        status=event.get("status", "completed"),
        tag=event.get("tag"),
    )
