# SPDX-License-Identifier: Apache-2.0
"""Remembers which cells do not answer, so that they are not asked in vain.

Every process has a memory of its own, and no thread is kept. A cell that did
not answer is left alone for a pause. Then one read tries it while the others
still go without. A read that was given up may hang in its thread for long,
and Nova's pool has few threads (``cell_worker_thread_pool_size``, 5 in Nova
34): each that hangs doubles the pause.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

#: Seconds of the longest pause.
LONGEST = 300.0


class CellDownError(Exception):
    """A cell refused the connection or did not answer in its budget."""


@dataclass(slots=True)
class _State:
    """What is known of a cell that failed.

    :ivar closed_at: when it failed, or was tried again; None: it is well
    :ivar hanging: reads that were given up and have not ended
    """

    closed_at: float | None = None
    hanging: int = 0


class Attempt:
    """One read of one cell. The methods may be called from any thread."""

    def __init__(self, breaker: Breaker, state: _State) -> None:
        self._breaker = breaker
        self._state = state
        self._begun = False
        self._given_up = False
        self._ended = False

    def begin(self) -> bool:
        """Note that a thread works on it; False where nobody waits for it."""
        with self._breaker.lock:
            self._begun = not self._given_up
            return self._begun

    def end(self, *, refused: bool = False) -> None:
        """Note that it has ended; too late an end says nothing of the cell.

        :param refused: the cell cannot be reached
        """
        with self._breaker.lock:
            self._ended = True
            if self._given_up:
                self._state.hanging -= 1
            elif refused:
                self._breaker.close(self._state)
            else:
                self._state.closed_at = None

    def give_up(self) -> bool:
        """Note that nobody waits for it any longer.

        :returns: whether the cell is to blame; it is not where no thread
            was free to ask it
        """
        with self._breaker.lock:
            self._given_up = True
            if self._begun and not self._ended:
                self._state.hanging += 1
                self._breaker.close(self._state)
            return self._begun


class Breaker:
    """Says which cells may be asked.

    :param pause: seconds for which a cell that did not answer is left alone
    :param clock: seconds that only grow
    """

    def __init__(
        self, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pause = pause
        self._clock = clock
        self._states: dict[str, _State] = {}
        #: Held for a moment only, never while a cell is asked.
        self.lock = threading.Lock()

    def admit(self, cell: str) -> Attempt:
        """Return an attempt to read a cell.

        :raises CellDownError: where it is to be left alone
        """
        with self.lock:
            state = self._states.setdefault(cell, _State())
            if state.closed_at is not None:
                if self._clock() < state.closed_at + self._length(state):
                    raise CellDownError("it did not answer a moment ago")
                # This one tries it, the others go without meanwhile.
                self.close(state)
            return Attempt(self, state)

    def close(self, state: _State) -> None:
        """Begin a pause; the lock is held."""
        state.closed_at = self._clock()

    def _length(self, state: _State) -> float:
        doubled = min(max(0, state.hanging - 1), 16)
        return min(self._pause * 2.0**doubled, max(self._pause, LONGEST))

    def hanging(self) -> int:
        """Return how many reads were given up and have not ended."""
        with self.lock:
            return sum(state.hanging for state in self._states.values())
