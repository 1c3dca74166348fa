# SPDX-License-Identifier: Apache-2.0
"""Which SQL statements went to which database."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

import sqlalchemy.event
from sqlalchemy.engine import Engine


class Statements:
    """Records the statements of a ``with`` block.

    Those are left out with which a service says now and then that it is
    alive: they belong to no request.

    :ivar seen: (database, statement) in their order; a database is ``api``,
        ``cell0``, ``cell1`` ... or ``other`` (placement)
    """

    def __init__(
        self, names: Mapping[int, str], every_thread: bool = False
    ) -> None:
        self.seen: list[tuple[str, str]] = []
        self._names = names
        self._thread = None if every_thread else threading.get_ident()

    def selects(self) -> dict[str, int]:
        """Return how many SELECTs went to each database that had one."""
        return dict(
            Counter(
                name
                for name, text in self.seen
                if text.lstrip().upper().startswith("SELECT")
            )
        )

    def writes(self) -> list[tuple[str, str]]:
        """Return the statements that change something."""
        return [
            (name, text)
            for name, text in self.seen
            if text.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))
        ]

    def __enter__(self) -> Statements:
        sqlalchemy.event.listen(Engine, "before_cursor_execute", self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sqlalchemy.event.remove(Engine, "before_cursor_execute", self._note)

    def _note(self, conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if self._thread in (None, threading.get_ident()) and not _alive():
            name = self._names.get(id(conn.engine), "other")
            self.seen.append((name, statement))


def _alive() -> bool:
    """Return whether this thread reports that a service is alive.

    It does so by itself or, for a compute service, in the conductor
    (nova.servicegroup.drivers.db and nova.conductor.manager, Nova 34).
    """
    return any(
        frame.f_code.co_name == "_report_state"
        or (
            frame.f_code.co_name == "object_action"
            and type(frame.f_locals.get("objinst")).__name__ == "Service"
        )
        for frame in _frames()
    )


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
