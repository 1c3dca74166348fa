# SPDX-License-Identifier: Apache-2.0
"""What a driver must be able to tell about callers and servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Protocol

from state_policy.engine.facts import Facts


class UnreadError(Exception):
    """It could not be read; neither yes nor no may be made of that."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends the request.

    :ivar credentials: as policy sees them, the keys of Nova's
        ``RequestContext.to_policy_values()``
    :ivar request_id: Nova's id of this request (``req-...``)
    :ivar context: the driver's own form of the caller; nobody else looks
        inside
    """

    credentials: Mapping[str, Any]
    request_id: str = ""
    context: Any = field(default=None, repr=False, compare=False)

    @property
    def project_id(self) -> str | None:
        """Return the project the caller is scoped to."""
        found: str | None = self.credentials.get("project_id")
        return found

    @property
    def is_admin(self) -> bool:
        """Return whether Nova takes the caller for an administrator."""
        return bool(self.credentials.get("is_admin"))


@dataclass(frozen=True, slots=True)
class Location:
    """Where a server is, and whose.

    :ivar server_id: its id as Nova writes it (the id in a request may be in
        capitals)
    :ivar project_id: the project that Nova's mapping names
    :ivar user_id: the user that the mapping names, or None
    :ivar build_request: True where no cell has it yet
    :ivar handle: the driver's own; nobody else looks inside
    """

    server_id: str
    project_id: str
    user_id: str | None = None
    build_request: bool = False
    handle: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What an explanation may add to the facts; asked for on refusals only.

    All of it the server's owner can read in Nova too.

    :ivar since: seconds the server has been in its state, or None
    :ivar action: the instance action that runs, or ran last, by Nova's name
    :ivar request_id: the request that started it
    :ivar locked_reason: why it is locked, where Nova shows it to the caller
    """

    since: float | None = None
    action: str | None = None
    request_id: str | None = None
    locked_reason: str | None = None


def may_any(
    reader: Reader, caller: Caller, location: Location, gates: Iterable[str]
) -> bool | None:
    """Return whether Nova lets the caller pass one of several policies.

    :returns: None where it cannot be told
    """
    found: bool | None = False
    for gate in gates:
        may = reader.may(caller, location, gate)
        if may:
            return True
        if may is None:
            found = None
    return found


class Reader(Protocol):
    """Reads callers, rights and facts. Reads nothing it was not asked for."""

    def caller(self, environ: Mapping[str, Any]) -> Caller | None:
        """Return who sends a request, or None where nobody is known."""

    def locate(self, server_id: str) -> Location | None:
        """Find a server by the id of a request; None where there is none.

        One narrow SELECT in the API database.

        :raises UnreadError: where it cannot be told whether there is one
        """

    def may(
        self, caller: Caller, location: Location, gate: str
    ) -> bool | None:
        """Return whether Nova lets the caller do this to this server.

        Ownership first, then the policy named ``gate``, custom policy files
        included. Raises nothing.

        :returns: None where it cannot be told. Such a caller is told nothing
            and nothing is done for him, but he is not to be taken for one
            whom Nova refuses either
        """

    def read(
        self, caller: Caller, location: Location, keys: Set[str]
    ) -> Facts:
        """Return the facts asked for; what could not be read is left out.

        Raises nothing. ``caller`` is always among the facts.
        """

    def circumstances(
        self, caller: Caller, location: Location
    ) -> Circumstances:
        """Return what an explanation may say beside the facts."""

    def natively_allowed(self, facts: Facts) -> frozenset[str] | None:
        """Return the operations that Nova itself would take in a state.

        :param facts: vm_state, task_state and launched are looked at
        :returns: names of operations, or None where it cannot be told
        """
