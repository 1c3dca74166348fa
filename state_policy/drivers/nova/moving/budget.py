# SPDX-License-Identifier: Apache-2.0
"""Steps that must not hold a request for longer than its budget.

Clients of Neutron and placement wait as long as the service takes. So the
steps run in a thread, and the request waits for it only as long as it may.
Threads are few: where all of them hang, steps are not begun at all and the
sweep does them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

LOG = logging.getLogger(__name__)

#: So many requests of a process may wait for a slow service at a time.
THREADS = 4


class Budget:
    """Runs steps one after the other in a thread, for a limited time."""

    def __init__(self, threads: int = THREADS) -> None:
        self._free = threading.BoundedSemaphore(threads)

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
        thread = threading.Thread(
            target=self._work,
            args=(steps, done),
            name="state-policy-moving",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError:
            self._free.release()
            LOG.warning("no thread could be started", exc_info=True)
            return tuple(steps)
        thread.join(seconds)
        finished = tuple(done)
        return tuple(name for name in steps if name not in finished)

    def _work(
        self, steps: Mapping[str, Callable[[], None]], done: list[str]
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
