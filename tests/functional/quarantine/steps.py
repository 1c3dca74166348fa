# SPDX-License-Identifier: Apache-2.0
"""Steps of the mover that fail, or before which something else happens."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from nova.compute import manager

from state_policy.quarantine.record import Kind
from tests.functional.harness import surgery
from tests.functional.harness.holds import Hold
from tests.functional.quarantine.support import RequestCase


class DeathError(RuntimeError):
    """Stands for the death of the process."""


class StepCase(RequestCase):
    """Servers with a port, on which steps fail or are overtaken."""

    def settled(self) -> str:
        """Return a server in quarantine."""
        server = self.boot(networks="auto")
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        return server

    def leave_to_the_sweep(self) -> None:
        """Have requests do nothing after the row and the mapping."""
        self.stub_out(
            "state_policy.drivers.nova.moving.Mover.within",
            lambda mover, seconds, steps: tuple(steps),
        )

    def die_at(self, step: str) -> Callable[[], None]:
        """Have a step of the mover's fail; return what makes it work again."""

        def die(*args: object, **kwargs: object) -> None:
            raise DeathError("the process died here")

        setattr(self.mover, step, die)
        return functools.partial(delattr, self.mover, step)

    def before(self, step: str, act: Callable[[], object]) -> None:
        """Have something happen right before a step, once."""
        original = getattr(self.mover, step)

        def overtaken(*args: Any, **kwargs: Any) -> Any:
            delattr(self.mover, step)
            act()
            return original(*args, **kwargs)

        setattr(self.mover, step, overtaken)

    def hold_end(self) -> Hold:
        """Block deletes when compute has saved ``deleted`` in the row."""
        name = "_complete_deletion"
        hold = Hold(getattr(manager.ComputeManager, name))
        self.stub_out(
            f"nova.compute.manager.ComputeManager.{name}", hold.method()
        )
        self.addCleanup(hold.wait_left)
        self.addCleanup(hold.release)
        return hold

    def let_end(self, server: str, hold: Hold) -> None:
        """Let a delete end, and wait for it."""
        hold.release()
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")

    def kinds(self, server: str) -> list[Kind]:
        """Return the kinds of the records, the oldest first."""
        return [found.kind for found in self.records(server)]
