# SPDX-License-Identifier: Apache-2.0
"""Operations that block in the hypervisor until a test lets them go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

#: How long anything here waits before it gives up, in seconds.
PATIENCE = 30


class Hold:
    """Blocks every call of one method of the hypervisor's driver.

    ``wait_reached()`` returns once a call has come in; ``release()`` lets
    all calls go on, now and later; ``wait_left()`` returns once all that
    came in have returned. A call that nobody releases fails after a while
    instead of hanging the run.
    """

    def __init__(
        self,
        original: Callable[..., Any],
        wanted: Callable[..., bool] | None = None,
    ) -> None:
        self._original = original
        self._wanted = wanted
        self._reached = threading.Event()
        self._released = threading.Event()
        self._count = threading.Condition()
        self._inside = 0
        #: How long a call stays blocked at most, in seconds.
        self.patience: float = PATIENCE * 2

    def wait_reached(self, seconds: float = PATIENCE) -> None:
        """Wait until a call is blocked."""
        if not self._reached.wait(seconds):
            raise AssertionError("the hypervisor was not called")

    def release(self) -> None:
        """Let every call go on."""
        self._released.set()

    def wait_left(self, seconds: float = PATIENCE) -> None:
        """Wait until no call is inside any more."""
        with self._count:
            if not self._count.wait_for(lambda: not self._inside, seconds):
                raise AssertionError("a call is still in the hypervisor")

    def __call__(self, driver: Any, *args: Any, **kwargs: Any) -> Any:
        """Stand where the driver's method stood."""
        if self._wanted and not self._wanted(*args, **kwargs):
            return self._original(driver, *args, **kwargs)
        with self._count:
            self._inside += 1
        try:
            self._reached.set()
            if not self._released.wait(self.patience):
                raise AssertionError("a blocked call was never released")
            return self._original(driver, *args, **kwargs)
        finally:
            with self._count:
                self._inside -= 1
                self._count.notify_all()

    def method(self) -> Callable[..., Any]:
        """Return a function to put into the driver's class."""

        def blocked(driver: Any, *args: Any, **kwargs: Any) -> Any:
            return self(driver, *args, **kwargs)

        return blocked
