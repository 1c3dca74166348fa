# SPDX-License-Identifier: Apache-2.0
"""Reads servers from a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from state_policy.drivers.memory.answers import Answers
from state_policy.engine.facts import CALLER, Facts
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.moving import Mover
from state_policy.engine.ports.reading import Caller, Circumstances, Location

#: Where an environ keeps the credentials of who sends the request.
CALLER_KEY = "state_policy.caller"


@dataclass
class MemoryServer:
    """A server.

    :ivar facts: by key; a key that is missing cannot be read
    """

    id: str
    project_id: str = "p"
    user_id: str = "u"
    facts: dict[str, Any] = field(default_factory=dict)
    circumstances: Circumstances = field(default_factory=Circumstances)
    build_request: bool = False


def _everything(facts: Facts) -> frozenset[str] | None:
    return frozenset(OPERATIONS)


class Driver:
    """Knows the servers it was given.

    :param settings: those of the filter, which change nothing here
    :ivar asked: every question, as ``(method, what)``, in order
    :ivar forbidden: policies of the cloud that nobody passes
    :ivar native: from facts to the operations that the cloud itself takes
    """

    def __init__(
        self,
        servers: Iterable[MemoryServer] = (),
        *,
        forbidden: Set[str] = frozenset(),
        native: Callable[[Facts], frozenset[str] | None] = _everything,
        mover: Mover | None = None,
        settings: object = None,
    ) -> None:
        self.servers = {server.id: server for server in servers}
        self.forbidden = frozenset(forbidden)
        self.native = native
        self.mover = mover
        self.answers = Answers()
        self.asked: list[tuple[str, Any]] = []

    def hanging(self) -> int:
        """Return that nothing hangs."""
        return 0

    def caller(self, environ: Mapping[str, Any]) -> Caller | None:
        """Return who sends a request, or None where nobody is known."""
        credentials = environ.get(CALLER_KEY)
        if credentials is None:
            return None
        return Caller(credentials, str(credentials.get("request_id", "")))

    def caller_with(self, credentials: Mapping[str, Any]) -> Caller:
        """Return a caller with these credentials."""
        return Caller({"is_admin": False, **credentials})

    def locate(self, server_id: str) -> Location | None:
        """Find a server; capitals find it, too."""
        self.asked.append(("locate", server_id))
        found = self.servers.get(server_id.lower())
        if found is None:
            return None
        return Location(
            found.id, found.project_id, found.user_id, found.build_request
        )

    def may(
        self, caller: Caller, location: Location, gate: str
    ) -> bool | None:
        """Return whether the cloud lets the caller do this."""
        self.asked.append(("may", gate))
        if not caller.is_admin and caller.project_id != location.project_id:
            return False
        return gate not in self.forbidden

    def read(
        self, caller: Caller, location: Location, keys: Set[str]
    ) -> Facts:
        """Return the facts asked for."""
        self.asked.append(("read", frozenset(keys)))
        known = self.servers[location.server_id].facts
        target = {
            "project_id": location.project_id,
            "user_id": location.user_id,
        }
        return {
            CALLER: {**caller.credentials, "target": target},
            **{key: known[key] for key in keys if key in known},
        }

    def circumstances(
        self, caller: Caller, location: Location
    ) -> Circumstances:
        """Return what an explanation may say."""
        self.asked.append(("circumstances", location.server_id))
        return self.servers[location.server_id].circumstances

    def natively_allowed(self, facts: Facts) -> frozenset[str] | None:
        """Return the operations that the cloud itself would take."""
        return self.native(facts)
