# SPDX-License-Identifier: Apache-2.0
"""How long requests wait for what is only tried."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator

LOG = logging.getLogger("state_policy.filter")

#: Seconds that one request may spend before others are spared.
LIMIT = 1.0
#: Seconds for which they are.
REST = 60.0


class Patience:
    """Spares requests for a while after one has waited for long.

    A wait that has begun cannot be cut short without another thread, and
    facts that come later are those of another moment. So it is not begun
    again too soon. Every process counts for itself.

    :param clock: seconds that only grow
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: float | None = None

    @property
    def left(self) -> bool:
        """Return whether a request may wait."""
        return self._until is None or self._clock() >= self._until

    @contextlib.contextmanager
    def spent(self) -> Iterator[None]:
        """Measure how long what is inside takes."""
        begun = self._clock()
        try:
            yield
        finally:
            now = self._clock()
            if now - begun > LIMIT:
                self._until = now + REST
                LOG.warning(
                    "the rules on trial are not asked for %d s: to read their "
                    "facts took %.1f s",
                    REST,
                    now - begun,
                )
