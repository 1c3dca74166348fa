# SPDX-License-Identifier: Apache-2.0
"""Reads the facts asked for, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from state_policy.drivers.nova import cells, locate
from state_policy.drivers.nova import server as servers
from state_policy.drivers.nova.breaker import CellDownError
from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.facts import (
    actions,
    building,
    common,
    counts,
    events,
    hosts,
    parts,
)
from state_policy.drivers.nova.facts.source import Source
from state_policy.drivers.nova.once import Once
from state_policy.drivers.nova.server import Server
from state_policy.engine.facts import CALLER, Facts
from state_policy.engine.ports.reading import Caller, Location

#: What a cell's database has beside the server's row, a SELECT each.
CELL_SOURCES = (
    actions.SOURCE,
    events.SOURCE,
    hosts.HOST_UP,
    hosts.HYPERVISOR,
    *parts.SOURCES,
)

#: Every fact about a server that can be read here.
SERVER_KEYS = common.KEYS.union(
    hosts.AGGREGATES.keys, *(source.keys for source in CELL_SOURCES)
)


class FactReader:
    """Reads facts: one SELECT for the common ones, one more a relation."""

    def __init__(
        self, reader: Cells, once: Once, off: Set[str] = frozenset()
    ) -> None:
        self._cells = reader
        self._off = off
        self._once = once
        self._counts = counts.Counts(reader)

    def server(self, location: Location) -> Server | None:
        """Return a server's row, and keep it for the facts that follow.

        One that was read a moment ago will do: whose a server is does not
        change in that time.

        :returns: None where the server is gone
        :raises CellDownError: its cell does not answer
        :raises Exception: it cannot be read for another reason
        """
        seen = location.handle.peek()
        if seen is not None:
            found: Server = seen
            return found
        return self._load(location)

    def _load(self, location: Location) -> Server | None:
        if location.handle.cell is None:
            request = servers.load_build_request(location.server_id)
            return request[0] if request else self._arrived(location)
        server: Server | None = location.handle.read(
            self._cells, lambda c: servers.load(c, location.server_id)
        )
        if server is not None:
            location.handle.keep(server)
        return server

    def read(
        self, caller: Caller, location: Location, keys: Set[str]
    ) -> Facts:
        """Return the facts asked for; what cannot be read is left out."""
        seen = location.handle.take()
        facts: dict[str, Any] = {}
        if keys & SERVER_KEYS or _asks_user(location, seen, keys):
            seen = self._server_facts(location, seen, keys, facts)
        for key in keys:
            if key.startswith(counts.DELETES):
                count = self._counts.deletes
                self._add(facts, key, count, location.project_id, key)
            elif key == counts.STUCK:
                self._add(facts, key, self._counts.stuck)
        facts = {key: facts[key] for key in keys if key in facts}
        facts[CALLER] = {
            **caller.credentials,
            "target": {
                "project_id": seen.project_id if seen else location.project_id,
                "user_id": seen.user_id if seen else location.user_id,
            },
        }
        return facts

    def _add(
        self,
        facts: dict[str, Any],
        key: str,
        count: Callable[..., int],
        *values: str,
    ) -> None:
        try:
            facts[key] = count(*values)
        except Exception as error:  # noqa: BLE001 left out, by contract
            self._once.warn(f"cannot read {key}", error)

    def _server_facts(
        self,
        location: Location,
        seen: Server | None,
        keys: Set[str],
        facts: dict[str, Any],
    ) -> Server | None:
        try:
            if location.handle.cell is None:
                return self._from_build_request(location, keys, facts)
            return self._from_cell(location, seen, keys, facts)
        except CellDownError as error:
            self._once.warn(f"cell {location.handle.cell} is down", error)
            facts.clear()
            facts["server.cell_up"] = False
        except Exception as error:  # noqa: BLE001 left out, by contract
            self._once.warn("cannot read a server", error)
        return seen

    def _from_build_request(
        self, location: Location, keys: Set[str], facts: dict[str, Any]
    ) -> Server | None:
        found = servers.load_build_request(location.server_id)
        if found is None:
            moved = locate.locate(location.server_id)
            if moved is None or moved.handle.cell is None:
                return None
            return self._from_cell(moved, None, keys, facts)
        facts.update(building.facts(*found))
        return found[0]

    def _from_cell(
        self,
        location: Location,
        seen: Server | None,
        keys: Set[str],
        facts: dict[str, Any],
    ) -> Server | None:
        wanted = [s for s in CELL_SOURCES if (keys - self._off) & s.keys]
        if seen is None or wanted:
            # A read that was given up goes on, so it gets nothing to write to.
            def read(connection: Any) -> tuple[Server | None, dict[str, Any]]:
                row = seen or servers.load(connection, location.server_id)
                found: dict[str, Any] = {}
                if row is not None:
                    self._from_sources(wanted, connection, row, found)
                return row, found

            seen, found = location.handle.read(self._cells, read)
            facts.update(found)
        if seen is None:
            return None
        location.handle.keep(seen, used=True)
        facts.update(common.facts(seen))
        if keys & hosts.AGGREGATES.keys:
            server = seen
            cells.read_api(
                lambda c: self._from_sources(
                    [hosts.AGGREGATES], c, server, facts
                )
            )
        return seen

    def _from_sources(
        self,
        wanted: Iterable[Source],
        connection: Any,
        server: Server,
        facts: dict[str, Any],
    ) -> None:
        for source in wanted:
            facts.update(self._guarded(source, connection, server))

    def _guarded(
        self, source: Source, connection: Any, server: Server
    ) -> Mapping[str, Any]:
        try:
            return source.read(connection, server)
        except Exception as error:
            if cells.is_down(error):
                raise
            self._once.warn(f"cannot read {min(source.keys)}", error)
            return {}

    def _arrived(self, location: Location) -> Server | None:
        """Read a server that reached its cell since it was located."""
        moved = locate.locate(location.server_id)
        if moved is None or moved.handle.cell is None:
            return None
        return self.server(moved)


def _asks_user(
    location: Location, seen: Server | None, keys: Set[str]
) -> bool:
    """Return whether the row must tell the user whom the mapping does not.

    Mappings from before Nova's Train have none until Nova migrates them.
    """
    return CALLER in keys and seen is None and location.user_id is None
