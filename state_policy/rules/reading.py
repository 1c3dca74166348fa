# SPDX-License-Identifier: Apache-2.0
"""A driver's reader that also asks the kinds of third parties.

The driver knows the facts of the kinds that come with the project. A kind
of a third party that has a fact of its own reads it itself (``Kind.read``).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Set
from typing import Any

from state_policy.engine.facts import Facts
from state_policy.engine.ports.reading import (
    Caller,
    Circumstances,
    Location,
    Reader,
)
from state_policy.rules.kinds import BUILTIN, Kind, Subject, installed

LOG = logging.getLogger(__name__)


def with_kinds(reader: Reader) -> Reader:
    """Return a reader that also asks the installed kinds of third parties.

    :returns: the reader itself where there is none
    :raises RulesError: where an installed kind is broken
    """
    kinds = {n: kind for n, kind in installed().items() if n not in BUILTIN}
    return KindReader(reader, kinds) if kinds else reader


class KindReader:
    """A ``Reader`` around another; adds the facts of third parties."""

    def __init__(
        self, reader: Reader, kinds: Mapping[str, type[Kind]]
    ) -> None:
        """Take the driver's reader, and third parties' kinds by name."""
        self._reader = reader
        self._own = kinds

    def caller(self, environ: Mapping[str, Any]) -> Caller | None:
        """Return who sends a request."""
        return self._reader.caller(environ)

    def locate(self, server_id: str) -> Location | None:
        """Find a server by the id of a request.

        :raises UnreadError: where it cannot be told whether there is one
        """
        return self._reader.locate(server_id)

    def may(
        self, caller: Caller, location: Location, gate: str
    ) -> bool | None:
        """Return whether Nova lets the caller do this; None: nobody knows."""
        return self._reader.may(caller, location, gate)

    def read(
        self, caller: Caller, location: Location, keys: Set[str]
    ) -> Facts:
        """Return the facts asked for; what could not be read is left out."""
        own = {key: kind for key in keys if (kind := self._kind(key))}
        if not own:
            return self._reader.read(caller, location, keys)
        wanted = frozenset().union(*(kind.wants for kind in own.values()))
        known = self._reader.read(
            caller, location, (keys - own.keys()) | wanted
        )
        found = {k: v for k, v in known.items() if k not in wanted - keys}
        for key, kind in own.items():
            subject = Subject(
                location.server_id,
                location.project_id,
                caller.credentials,
                {k: known[k] for k in kind.wants if k in known},
            )
            try:
                found[key] = kind.read(key, subject)
            except LookupError:
                LOG.debug("No value of %s", key)
            except Exception:
                # Not read is a state that rules know; an error of a plugin
                # must not become an error of the API.
                LOG.exception("Kind %s failed to read its fact", key)
        return found

    def circumstances(
        self, caller: Caller, location: Location
    ) -> Circumstances:
        """Return what an explanation may say beside the facts."""
        return self._reader.circumstances(caller, location)

    def natively_allowed(self, facts: Facts) -> frozenset[str] | None:
        """Return the operations that Nova itself would take in a state."""
        return self._reader.natively_allowed(facts)

    def _kind(self, key: str) -> type[Kind] | None:
        return self._own.get(key.partition(":")[0])
