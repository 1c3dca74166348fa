# SPDX-License-Identifier: Apache-2.0
"""Says a fault once, not once a request."""

from __future__ import annotations

import threading
import time

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Seconds before the same fault is said again.
PAUSE = 300.0


class Once:
    """Logs faults, the same one at most every :data:`PAUSE` seconds."""

    def __init__(self, pause: float = PAUSE) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._said: dict[str, float] = {}

    def warn(self, what: str, fault: BaseException | str) -> None:
        """Log that something could not be done.

        :param what: a fixed text; tells faults apart together with the type
        :param fault: the exception, or the reason in words. Only its type
            and first line are logged: a traceback could hold values
        """
        kind = fault if isinstance(fault, str) else type(fault).__name__
        if not self._due(f"{what}: {kind}"):
            return
        if isinstance(fault, str):
            LOG.warning("%s: %s", what, fault)
        else:
            first = (str(fault).splitlines() or [""])[0][:300]
            LOG.warning("%s: %s: %s", what, kind, first)

    def _due(self, key: str) -> bool:
        now = time.monotonic()
        with self._lock:
            said = self._said.get(key)
            if said is not None and now - said < self._pause:
                return False
            self._said[key] = now
            return True
