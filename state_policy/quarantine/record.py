# SPDX-License-Identifier: Apache-2.0
"""What is written down beside a server that was moved.

A record is text (JSON) that the driver keeps with the server. The newest one
says what is being done; each carries all that is needed to undo it. No
secrets, and nothing of hosts or hypervisors.
"""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from state_policy.engine.ports.moving import Owner, Port, Server

VERSION = 1

#: Nova's column (``instance_actions_events.traceback``) is TEXT: 65535 bytes.
LIMIT = 60_000

_TIME = "%Y-%m-%dT%H:%M:%S"


class RecordError(ValueError):
    """A text that is no record, or one that is too long."""


class Kind(enum.StrEnum):
    """What a record says is being done, or was done last."""

    CONCEAL = "conceal"
    SETTLE = "settle"
    RELEASE = "release"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class Record:
    """One record.

    :ivar owner: whose the server was
    :ivar target: where it went
    :ivar since: when it was concealed (UTC)
    :ivar at: when this record was written (UTC)
    :ivar request_id: of the request that made it leave
    :ivar requested_by: who sent that; None for the owner
    :ivar operation: what the request asked
    :ivar decision: id of the decision
    :ivar rule: the rule that decided
    :ivar revision: of the rule set
    :ivar vm_state: when it was concealed
    :ivar task_state: when it was concealed
    :ivar running: what had not ended when it was concealed
    :ivar stranded: what had not ended when it was settled
    :ivar locked_by: how it was locked before
    :ivar group: the server group it was in
    :ivar ports: the ports it had
    :ivar volumes: the volumes it has
    :ivar attempts: how often it was tried to delete it
    """

    kind: Kind
    server_id: str
    owner: Owner
    target: Owner
    since: datetime
    at: datetime
    request_id: str = ""
    requested_by: Owner | None = None
    operation: str = ""
    decision: str = ""
    rule: str | None = None
    revision: str = ""
    vm_state: str | None = None
    task_state: str | None = None
    running: tuple[str, ...] = ()
    stranded: tuple[str, ...] = ()
    locked_by: str | None = None
    group: str | None = None
    ports: tuple[Port, ...] = ()
    volumes: tuple[str, ...] = field(default=())
    attempts: int = 0

    @property
    def busy(self) -> bool:
        """Return whether an operation was under way when it was concealed."""
        return (
            bool(self.running)
            or self.task_state is not None
            or self.vm_state == "building"
        )

    @property
    def holder(self) -> Owner:
        """Return whose the server is, or will be once this is done."""
        return self.owner if self.kind is Kind.RELEASE else self.target

    @property
    def made_by_compute(self) -> tuple[str, ...]:
        """Return the ids of the ports that compute made."""
        return tuple(p.id for p in self.ports if p.made_by_compute)

    def is_under_way(self, newest: Record | None) -> bool:
        """Return whether a server is still where this record takes it.

        :param newest: the newest record of the server
        """
        return (
            newest is not None
            and newest.holder == self.holder
            and (newest.since, newest.request_id)
            == (self.since, self.request_id)
        )

    def next(self, kind: Kind, at: datetime, **changes: Any) -> Record:
        """Return the record that follows this one."""
        return replace(self, kind=kind, at=at, **changes)


def dump(record: Record) -> str:
    """Return the text of a record.

    :raises RecordError: where it would be longer than LIMIT bytes
    """
    content = asdict(record)
    content["version"] = VERSION
    content["since"] = record.since.strftime(_TIME)
    content["at"] = record.at.strftime(_TIME)
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    if len(text.encode()) > LIMIT:
        raise RecordError(f"the record would be longer than {LIMIT} bytes")
    return text


def load(text: str) -> Record:
    """Return the record in a text.

    :raises RecordError: where there is none
    """
    try:
        content = json.loads(text)
        if content.pop("version") != VERSION:
            raise RecordError("a record of another version")
        return Record(**_typed(content))
    except RecordError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise RecordError(f"not a record: {e}") from e


def of(server: Server | None) -> Record | None:
    """Return the newest record of a server, None where it has none."""
    if server is None or server.record is None:
        return None
    return load(server.record)


def _typed(content: dict[str, Any]) -> dict[str, Any]:
    content["kind"] = Kind(content["kind"])
    for key in ("since", "at"):
        content[key] = datetime.strptime(content[key], _TIME)
    for key in ("owner", "target", "requested_by"):
        if content[key] is not None:
            content[key] = Owner(**content[key])
    content["ports"] = tuple(Port(**port) for port in content["ports"])
    for key in ("running", "stranded", "volumes"):
        content[key] = tuple(content[key])
    return content
