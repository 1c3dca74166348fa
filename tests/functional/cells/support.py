# SPDX-License-Identifier: Apache-2.0
"""Two cells and cell0, and what makes the database of one fail."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import sqlalchemy as sa
from nova import context
from nova.db.main import api as main_db
from oslo_db import exception as db_exception

from tests.functional.harness.holds import PATIENCE
from tests.functional.quarantine.support import RequestCase

#: Seconds that a cell has in these tests; one that is well has to answer in
#: them on a busy machine too.
TIMEOUT = 1.5
#: A pause that no test outlasts; those that need its end set a shorter one.
RETRY = 120.0


class Trouble:
    """Stands between SQLAlchemy and the database of one cell.

    :ivar asked: how often the driver's reader of cells came while it was on;
        services of Nova come too
    """

    def __init__(self, engine: Any) -> None:
        self._released = threading.Event()
        self._how: str | None = None
        self.asked = 0
        sa.event.listen(engine, "before_cursor_execute", self._meet)

    def refuse(self) -> None:
        """Let every statement fail as oslo.db tells a lost connection."""
        self._how, self.asked = "refuse", 0

    def hang(self) -> None:
        """Let no statement end before :meth:`end`."""
        self._released.clear()
        self._how, self.asked = "hang", 0

    def end(self) -> None:
        """Be as if nothing had been."""
        self._how = None
        self._released.set()

    def _meet(self, *args: Any) -> None:
        if self._how is None:
            return
        if _by_driver():
            self.asked += 1
        if self._how == "refuse":
            raise db_exception.DBConnectionError(
                "cannot connect to mysql://nova:secret@db2"
            )
        if not self._released.wait(PATIENCE):
            raise AssertionError("the database was never let go")


def _by_driver() -> bool:
    """Return whether it is the driver's reader of cells that calls."""
    frame = sys._getframe()
    while frame := frame.f_back:
        if (
            frame.f_globals.get("__name__")
            == "state_policy.drivers.nova.cells"
        ):
            return True
    return False


class CellsCase(RequestCase):
    """A server of the owner's in each of two cells."""

    NUMBER_OF_CELLS = 2
    HOSTS = (("one", "cell1"), ("two", "cell2"))
    OPTIONS: ClassVar[dict[str, Any]] = {
        "cell_timeout": TIMEOUT,
        "cell_retry": RETRY,
    }

    def trouble(self, cell: str = "cell2") -> Trouble:
        """Return what can make the database of a cell fail."""
        admin = context.get_admin_context()
        mapping = self.cell_mappings[cell]
        with context.target_cell(admin, mapping) as targeted:
            engine = main_db.get_engine(context=targeted)
        found = Trouble(engine)
        self.addCleanup(found.end)
        return found

    def boot_on(self, host: str, **more: Any) -> str:
        """Have the owner's server created on one of the hosts."""
        others = [name for name, _ in self.HOSTS if name != host]
        for name in others:
            self.schedulable(name, False)
        try:
            return self.boot(**more)
        finally:
            for name in others:
                self.schedulable(name, True)

    def schedulable(self, host: str, yes: bool) -> None:
        """Say whether new servers may come to a host."""
        (service,) = self.operator.get_services(
            host=host, binary="nova-compute"
        )
        self.operator.put_service(
            service["id"], {"status": "enabled" if yes else "disabled"}
        )

    @contextmanager
    def at_most(self, seconds: float) -> Iterator[None]:
        """Fail where the block takes longer."""
        began = time.monotonic()
        yield
        self.assertLess(time.monotonic() - began, seconds)

    def reader(self) -> Any:
        """Return a driver with the time limits of these tests."""
        from state_policy.conf import Settings
        from state_policy.drivers.nova import Driver

        return Driver(Settings(cell_timeout=TIMEOUT, cell_retry=RETRY))
