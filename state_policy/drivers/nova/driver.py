# SPDX-License-Identifier: Apache-2.0
"""The driver `nova`: reads, judges and moves servers inside Nova's API."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Mapping, Set
from typing import Any, Protocol

from oslo_log import log as logging

from state_policy.drivers.nova import context, locate, names, native
from state_policy.drivers.nova.answers import Answers
from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.circumstances import Surroundings
from state_policy.drivers.nova.facts.reader import FactReader
from state_policy.drivers.nova.once import Once
from state_policy.drivers.nova.rights import Rights
from state_policy.engine.facts import Facts
from state_policy.engine.ports.reading import (
    Caller,
    Circumstances,
    Location,
    UnreadError,
)

LOG = logging.getLogger(__name__)


class UnknownNovaError(Exception):
    """The installed Nova lacks what the driver cannot do without."""


class CellSettings(Protocol):
    """What the driver looks at in the settings; seconds."""

    @property
    def cell_timeout(self) -> float:
        """How long a cell has for its answer."""

    @property
    def cell_retry(self) -> float:
        """How long a cell that did not answer is left alone."""


class Driver:
    """Reads facts in process, through Nova's own databases and policy.

    :param settings: those of the filter; None: the defaults
    :raises UnknownNovaError: where a needed name of Nova is not as expected
    """

    def __init__(self, settings: CellSettings | None = None) -> None:
        self.off = _check_names()
        self._once = Once()
        self._cells = (
            Cells(settings.cell_timeout, settings.cell_retry)
            if settings
            else Cells()
        )
        self._facts = FactReader(self._cells, self._once, self.off)
        self._rights = Rights(self._facts, self._once)
        self._around = Surroundings(self._cells, self._rights, self._once)
        self._lock = threading.Lock()
        self._native: native.Table | None = None
        self._mover: Any = None
        self.answers = Answers()

    @property
    def mover(self) -> Any:
        """Return what moves servers; made when it is first asked for."""
        with self._lock:
            if self._mover is None:
                moving = importlib.import_module(
                    "state_policy.drivers.nova.moving"
                )
                self._mover = moving.Mover(cells=self._cells)
            return self._mover

    def caller(self, environ: Mapping[str, Any]) -> Caller | None:
        """Return who sends a request, or None where nobody is known."""
        return context.caller(environ)

    def caller_with(self, credentials: Mapping[str, Any]) -> Caller:
        """Return a caller of whom only this is known.

        :param credentials: ``user_id``, ``project_id``, ``roles`` and other
            arguments of Nova's ``RequestContext``
        """
        return context.made_of(credentials)

    def locate(self, server_id: str) -> Location | None:
        """Find a server; None where there is none.

        :raises UnreadError: where it cannot be told whether there is one
        """
        try:
            return locate.locate(server_id)
        except Exception as error:
            self._once.warn("cannot look a server up", error)
            raise UnreadError("a server could not be looked up") from error

    def may(
        self, caller: Caller, location: Location, gate: str
    ) -> bool | None:
        """Return whether Nova lets the caller; None: it cannot be told."""
        return self._rights.may(caller, location, gate)

    def read(
        self, caller: Caller, location: Location, keys: Set[str]
    ) -> Facts:
        """Return the facts asked for; what could not be read is left out."""
        return self._facts.read(caller, location, keys)

    def circumstances(
        self, caller: Caller, location: Location
    ) -> Circumstances:
        """Return what an explanation may say beside the facts."""
        return self._around.read(caller, location)

    def natively_allowed(self, facts: Facts) -> frozenset[str] | None:
        """Return the operations that Nova itself takes in a state."""
        table = self._native_table()
        return native.allowed(table, facts) if table else None

    def hanging(self) -> int:
        """Return how many reads of cells hang that nobody waits for."""
        return self._cells.hanging()

    def _native_table(self) -> native.Table | None:
        with self._lock:
            if self._native is None:
                self._native = self._derive()
            return self._native

    def _derive(self) -> native.Table:
        if "native" in self.off:
            return {}
        try:
            return native.derive()
        except Exception as error:  # noqa: BLE001 it cannot be told, then
            self._once.warn("cannot read Nova's own table of states", error)
            return {}


def _check_names() -> frozenset[str]:
    """Return the features that this Nova does not support."""
    found = names.differences()
    needed = [
        f"{n.module}.{n.path}: {why}" for n, why in found if not n.feature
    ]
    if needed:
        raise UnknownNovaError("; ".join(needed))
    for name, why in found:
        LOG.warning(
            "%s is off: %s.%s: %s", name.feature, name.module, name.path, why
        )
    return frozenset(n.feature for n, _ in found if n.feature)
