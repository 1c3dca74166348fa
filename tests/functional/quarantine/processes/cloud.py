# SPDX-License-Identifier: Apache-2.0
"""Nova's databases without its services, for processes that die.

The databases, their schema and all that writes to them are Nova's. Placement
and Neutron are a file, so that what a dead process told them is kept; a
delete destroys the row at once.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from nova import config, context, exception, objects
from nova.db import migration
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import models as main_models
from oslo_utils import uuidutils

from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.moving import (
    Mover,
    _mover,
    contexts,
    registry,
    rows,
)
from state_policy.engine.ports.moving import Owner
from state_policy.quarantine import record

OWNER = Owner("owner-project", "owner")
KEEPER = Owner("quarantine-project", "keeper")

#: Seconds that a database has to answer on a busy machine.
PATIENCE = 60.0

#: What one database server has.
DATABASES = ("api", "cell0", "cell1")


def configure(directory: Path, urls: dict[str, str]) -> None:
    """Be a process of Nova's, with these databases."""
    file = directory / "nova.conf"
    file.write_text(
        f"[DEFAULT]\ntransport_url = fake:/\nstate_path = {directory}\n"
        "[quota]\ninstances = -1\ncores = -1\nram = -1\n"
        f"[oslo_concurrency]\nlock_path = {directory}\n"
        f"[api_database]\nconnection = {urls['api']}\n"
        "sqlite_synchronous = false\n"
        f"[database]\nconnection = {urls['cell1']}\n"
        "sqlite_synchronous = false\n"
    )
    _mover.COUNTING = PATIENCE
    config.parse_args(["nova", "--config-file", str(file)], prog="nova")
    objects.register_all()


def create(urls: dict[str, str]) -> None:
    """Make the tables as Nova's own migrations do, and map the cells."""
    migration.db_sync(database="api")
    admin = context.get_admin_context()
    for name, uuid in (
        ("cell0", objects.CellMapping.CELL0_UUID),
        ("cell1", uuidutils.generate_uuid()),
    ):
        cell = objects.CellMapping(
            admin,
            uuid=uuid,
            name=name,
            database_connection=urls[name],
            transport_url="fake:/" if name == "cell1" else "none:///",
            disabled=False,
        )
        cell.create()
        with context.target_cell(admin, cell) as target:
            migration.db_sync(database="main", context=target)


def _flavor(admin: Any) -> Any:
    return objects.Flavor(
        admin,
        id=1,
        flavorid="1",
        name="small",
        memory_mb=64,
        vcpus=1,
        root_gb=1,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        vcpu_weight=0,
        disabled=False,
        is_public=True,
        extra_specs={},
        description=None,
    )


def boot(directory: Path) -> str:
    """Return a server of the owner's, in a group, with a port."""
    admin = context.get_admin_context()
    server = uuidutils.generate_uuid()
    (cell,) = [
        cell
        for cell in objects.CellMappingList.get_all(admin)
        if cell.name == "cell1"
    ]
    with context.target_cell(admin, cell) as target:
        instance = objects.Instance(
            target,
            uuid=server,
            project_id=OWNER.project_id,
            user_id=OWNER.user_id,
            vm_state="active",
            task_state=None,
            display_name="server",
            memory_mb=64,
            vcpus=1,
            flavor=_flavor(target),
            old_flavor=None,
            new_flavor=None,
        )
        instance.create()
    objects.InstanceMapping(
        admin,
        instance_uuid=server,
        cell_mapping=cell,
        project_id=OWNER.project_id,
        user_id=OWNER.user_id,
    ).create()
    objects.RequestSpec(
        admin,
        instance_uuid=server,
        flavor=_flavor(admin),
        num_instances=1,
        project_id=OWNER.project_id,
        user_id=OWNER.user_id,
    ).create()
    _join(admin, server)
    with outside(directory) as found:
        found["consumers"][server] = OWNER.project_id
        found["ports"][server] = [f"port-of-{server}"]
    return server


def _join(admin: Any, server: str) -> None:
    group = objects.InstanceGroup(
        admin,
        uuid=uuidutils.generate_uuid(),
        name="group",
        project_id=OWNER.project_id,
        user_id=OWNER.user_id,
    )
    # without Nova's notification: there is no message bus
    with api_db.context_manager.writer.using(admin):
        row = api_models.InstanceGroup()
        row.update(
            {
                "uuid": group.uuid,
                "name": group.name,
                "project_id": group.project_id,
                "user_id": group.user_id,
            }
        )
        row.save(admin.session)
        registry._join_group(admin, server, group.uuid)


@contextmanager
def outside(directory: Path) -> Iterator[dict[str, Any]]:
    """Read and write what placement and Neutron hold, alone."""
    file = directory / "outside.json"
    with (directory / "outside.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = file.read_text() if file.exists() else ""
        found = json.loads(text or '{"consumers": {}, "ports": {}}')
        yield found
        new = file.with_suffix(".new")
        new.write_text(json.dumps(found))
        new.replace(file)


class CloudMover(Mover):
    """The mover of Nova, with a file for what is no database of Nova's."""

    def __init__(self, directory: Path) -> None:
        super().__init__(compute=object(), cells=Cells(PATIENCE))
        self._directory = directory

    def bound_ports(self, server_id: str) -> dict[str, str]:
        """Return the ports in the file."""
        with outside(self._directory) as found:
            ports = found["ports"].get(server_id, ())
            return dict.fromkeys(ports, OWNER.project_id)

    def release_ports(
        self,
        server_id: str,
        made_by_compute: Sequence[str],
        record: str | None,
        only: Collection[str] | None = None,
    ) -> None:
        """Unbind the ports in the file, all of which are the owner's."""
        with contexts.cell_of(server_id) as cell:
            rows.expect(cell, server_id, record)
        with outside(self._directory) as found:
            found["ports"][server_id] = []

    def consumer(self, server_id: str) -> Owner | None:
        """Return the consumer in the file."""
        with outside(self._directory) as found:
            project = found["consumers"].get(server_id)
        users = {KEEPER.project_id: KEEPER, OWNER.project_id: OWNER}
        return users.get(project)

    def charge(self, server_id: str, to: Owner) -> None:
        """Change the consumer in the file."""
        with outside(self._directory) as found:
            if server_id in found["consumers"]:
                found["consumers"][server_id] = to.project_id

    def delete(self, server_id: str, by: Owner, record: str) -> None:
        """Destroy the row, as compute does in the end.

        Where another was faster MariaDB's snapshot still shows the row, and
        Nova takes that for a host that changed; its API then looks again
        (nova.compute.api.API._delete, 34.0.0), and so is it done here.
        """
        with contexts.cell_of(server_id, contexts.acting(by)) as cell:
            rows.expect(cell, server_id, record)
            try:
                objects.Instance.get_by_uuid(cell, server_id).destroy()
            except exception.ObjectActionError:
                objects.Instance.get_by_uuid(cell, server_id)
                raise
        with outside(self._directory) as found:
            found["consumers"].pop(server_id, None)

    def notify(self, event: str, payload: Any) -> None:
        """Tell nobody."""


def state(directory: Path, server: str) -> dict[str, Any]:
    """Return what every store says of a server."""
    mover = CloudMover(directory)
    seen = mover.look(server)
    assert seen is not None
    admin = context.get_admin_context()
    spec = objects.RequestSpec.get_by_instance_uuid(admin, server)
    consumer = mover.consumer(server)
    return {
        "row": seen.owner.project_id,
        "mapping": seen.mapped.project_id,
        "spec": spec.project_id,
        "consumer": consumer.project_id if consumer else None,
        "hidden": seen.hidden,
        "deleted": seen.deleted,
        "locked_by": seen.locked_by,
        "bound": bool(mover.bound_ports(server)),
        "member": registry.group_of(server) is not None,
        "records": records(server),
    }


def records(server: str) -> list[str]:
    """Return the kinds of a server's records, the oldest first."""
    action, event = main_models.InstanceAction, main_models.InstanceActionEvent
    query = (
        sa.select(event.traceback)
        .join(action, action.id == event.action_id)
        .where(action.instance_uuid == server, event.event == rows.EVENT)
        .order_by(event.id)
    )
    with contexts.cell_of(server) as cell:
        found = rows.select(cell, query)
    return [str(record.load(text).kind) for (text,) in found]
