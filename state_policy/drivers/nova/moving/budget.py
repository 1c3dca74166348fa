# SPDX-License-Identifier: Apache-2.0
"""Work that must not hold a request for longer than its budget.

Clients of Neutron and placement wait as long as the service takes. So they
are called in a thread of the pool that Nova has for such things, and the
request waits for it only as long as it may. What has not ended in time goes
on behind. Few may hang: where so many do, nothing more is begun.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nova import utils
from oslo_utils import importutils

from state_policy.engine.ports.moving import MovingError

LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: So many pieces of work may hang at a time, of each of the two kinds. Nova's
#: pool has 10 threads (``default_thread_pool_size``).
THREADS = 4


def spawn(work: Callable[[], None]) -> None:
    """Have work done in Nova's default pool; eventlet's where Nova uses it.

    Nova before 34 has it as ``nova.utils.spawn``.
    """
    pools: Any = importutils.try_import("nova.thread_pool_factory")
    (pools or utils).spawn(work)


class Budget:
    """Does work in Nova's threads, for a limited time.

    :param threads: how much may hang
    """

    def __init__(self, threads: int = THREADS) -> None:
        self._free = threading.BoundedSemaphore(threads)
        self._threads = threads
        self._lock = threading.Lock()
        self._hanging = 0

    def run(
        self, seconds: float, steps: Mapping[str, Callable[[], None]]
    ) -> tuple[str, ...]:
        """Run the steps; return the names of those that were not done.

        What has not ended in time goes on; a step that fails does not keep
        the next from being run. Never raises.
        """
        if not self._free.acquire(blocking=False):
            return tuple(steps)
        done: list[str] = []
        ended = threading.Event()
        try:
            spawn(lambda: self._work(steps, done, ended))
        except Exception:
            self._free.release()
            LOG.warning("no thread could be had", exc_info=True)
            return tuple(steps)
        ended.wait(seconds)
        finished = tuple(done)
        return tuple(name for name in steps if name not in finished)

    def _work(
        self,
        steps: Mapping[str, Callable[[], None]],
        done: list[str],
        ended: threading.Event,
    ) -> None:
        try:
            for name, step in steps.items():
                try:
                    step()
                except Exception as e:
                    LOG.warning(
                        "step %s failed, the sweep will repeat it: %s",
                        name,
                        e,
                        exc_info=True,
                    )
                else:
                    done.append(name)
        finally:
            self._free.release()
            ended.set()

    def call(self, seconds: float, function: Callable[[], T]) -> T:
        """Return what a function returns.

        Any number may be called at a time, as long as few of them hang.

        :param function: changes nothing; it may go on behind
        :raises MovingError: where it has not ended in time
        :raises Exception: whatever it raises
        """
        with self._lock:
            if self._hanging >= self._threads:
                raise MovingError(f"{self._hanging} others before it hang")
        call = _Call(self, function)
        spawn(call.work)
        call.ended.wait(seconds)
        with self._lock:
            if not call.ended.is_set():
                call.given_up = True
                self._hanging += 1
        if call.given_up:
            raise MovingError(f"no answer in {seconds:g} s")
        if call.error is not None:
            raise call.error
        found: T = call.found
        return found

    def end(self, call: _Call) -> None:
        """Note that a call has ended, in time or not."""
        with self._lock:
            call.ended.set()
            if call.given_up:
                self._hanging -= 1


class _Call:
    """One call, and what became of it."""

    def __init__(self, budget: Budget, function: Callable[[], Any]) -> None:
        self._budget = budget
        self._function = function
        self.ended = threading.Event()
        self.given_up = False
        self.found: Any = None
        self.error: Exception | None = None

    def work(self) -> None:
        """Run in a thread of the pool."""
        try:
            self.found = self._function()
        except Exception as error:  # noqa: BLE001 raised by who waits
            self.error = error
        finally:
            self._budget.end(self)
