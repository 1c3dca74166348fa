# SPDX-License-Identifier: Apache-2.0
"""What follows once a row is concealed, and what ends a move half done.

Every function here can be repeated at any time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from state_policy.engine.ports.moving import Mover, Server
from state_policy.quarantine.policy import Policy
from state_policy.quarantine.record import Record, load

LOG = logging.getLogger(__name__)

EVENTS = "state_policy.quarantine"


def follow_up(mover: Mover, policy: Policy, record: Record, text: str) -> None:
    """Do what the request does after the row; never raises.

    The API database first, without a limit of time: with it the server is
    concealed for everybody. Ports are next, clients want them back.

    :param text: of the record
    """
    left: tuple[str, ...] = ()
    try:
        give_away(mover, record)
    except Exception:
        LOG.warning("mapping of %s failed", record.server_id, exc_info=True)
        left = ("mapping",)
    try:
        steps = _steps(mover, policy, record, text)
        left += mover.within(policy.request_budget, steps)
    except Exception:
        LOG.warning("the rest for %s failed", record.server_id, exc_info=True)
        left += ("the rest",)
    if left:
        LOG.warning(
            "left to the sweep for server %s: %s",
            record.server_id,
            ", ".join(left),
        )


def give_away(mover: Mover, record: Record) -> None:
    """Make the API database name the quarantine project."""
    mover.give(record.server_id, record.target, leave_group=True)


def _steps(
    mover: Mover, policy: Policy, record: Record, text: str
) -> Mapping[str, Callable[[], None]]:
    server_id = record.server_id
    steps: dict[str, Callable[[], None]] = {}
    if policy.on_ports == "release":
        steps["ports"] = partial(
            mover.release_ports, server_id, record.made_by_compute, text
        )
    steps["placement"] = partial(charge, mover, record)
    steps["consoles"] = partial(mover.close_consoles, server_id)
    steps["notification"] = partial(tell, mover, "conceal", record)
    return {
        name: partial(_unless_released, mover, record, step)
        for name, step in steps.items()
    }


def _unless_released(
    mover: Mover, record: Record, step: Callable[[], None]
) -> None:
    """Do a step of a request's, which may come to it very late.

    What hangs goes on behind the request, and by then the server may have
    been given back, even concealed anew.
    """
    if record.is_under_way(newest(mover, record.server_id)):
        step()
    else:
        LOG.info("server %s has been released since", record.server_id)


def newest(mover: Mover, server_id: str) -> Record | None:
    """Return the newest record of a server as it is now.

    :raises RecordError: where it cannot be read
    """
    text = mover.newest_record(server_id)
    return None if text is None else load(text)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A step that a request may have left undone.

    :ivar lacking: looks whether it did
    """

    name: str
    lacking: Callable[[], bool]
    act: Callable[[], None]


def leftovers(
    mover: Mover, policy: Policy, server: Server, record: Record
) -> tuple[Leftover, ...]:
    """Return what to look for on a concealed or settled server.

    A build that goes on binds ports late, and a slow network service may
    bind them after they were released; so this is looked at again.
    """
    unmapped = server.mapped != record.target
    return (
        Leftover(
            "mapping",
            lambda: unmapped,
            partial(give_away, mover, record),
        ),
        Leftover(
            "consoles",
            lambda: unmapped,
            partial(mover.close_consoles, server.id),
        ),
        Leftover(
            "placement",
            lambda: mover.consumer(server.id) not in (None, record.target),
            partial(charge, mover, record),
        ),
        Leftover(
            "ports",
            lambda: (
                policy.on_ports == "release"
                and bool(_ports_left(mover, server, record))
            ),
            lambda: mover.release_ports(
                server.id,
                made_by_compute(server, record),
                server.record,
                _ports_left(mover, server, record),
            ),
        ),
    )


def _ports_left(
    mover: Mover, server: Server, record: Record
) -> frozenset[str]:
    """Return the ports that a server should not have any more.

    What is bound to a concealed one was bound for its owner. A settled one
    has new owners, who may give it ports of their own project.
    """
    had = {port.id for port in record.ports}
    return frozenset(
        port
        for port, project in mover.bound_ports(server.id).items()
        if server.hidden or port in had or project != record.target.project_id
    )


def made_by_compute(server: Server, record: Record) -> tuple[str, ...]:
    """Return the ids of the ports that may be deleted with a server.

    Compute takes a port that comes back, after its ports were taken from it,
    for one that it made. So what the record says of a port counts for more
    than what compute's cache says now.
    """
    theirs = {port.id for port in record.ports if not port.made_by_compute}
    made = {
        port.id
        for port in (*record.ports, *server.ports)
        if port.made_by_compute
    }
    return tuple(sorted(made - theirs))


def charge(mover: Mover, record: Record) -> None:
    """Charge whom a record says, unless somebody has gone on meanwhile.

    Looked at afterwards: whoever goes on writes a record before he charges,
    so either he comes after us or it is seen here. Nobody else would put it
    right, a released server is looked at no more.
    """
    mover.charge(record.server_id, record.holder)
    now = newest(mover, record.server_id)
    if now is not None and now.holder != record.holder:
        mover.charge(record.server_id, now.holder)


def tell(mover: Mover, what: str, record: Record) -> None:
    """Send a notification that names the owner.

    Nova sends no delete for the owner; billing needs one.
    """
    mover.notify(f"{EVENTS}.{what}", payload(record))


def payload(record: Record) -> dict[str, Any]:
    """Return what a notification says."""
    return {
        "server_id": record.server_id,
        "project_id": record.owner.project_id,
        "user_id": record.owner.user_id,
        "quarantine_project_id": record.target.project_id,
        "request_id": record.request_id,
        "operation": record.operation,
        "concealed_at": record.since.isoformat(),
    }
