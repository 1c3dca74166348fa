# SPDX-License-Identifier: Apache-2.0
"""The filter, with a count of the requests that go through it."""

from __future__ import annotations

import atexit
import gc
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy import deploy

#: Names a directory: each process leaves its count there, in a file.
WHERE = "STATE_POLICY_SUITE_COUNTS"

# Nova's tests make much garbage, and look for it in vain.
gc.set_threshold(50_000, 20, 50)

_lock = threading.Lock()
_count = 0


def count() -> int:
    """Return how many requests went through a filter of this process."""
    with _lock:
        return _count


def filter_factory(
    global_conf: dict[str, str], **local_conf: str
) -> Callable[[WSGIApplication], WSGIApplication]:
    """Return the filter's own factory, counted (paste)."""
    make = deploy.filter_factory(global_conf, **local_conf)

    def counted(app: WSGIApplication) -> WSGIApplication:
        behind = make(app)

        def passing(
            environ: WSGIEnvironment, start_response: StartResponse
        ) -> Iterable[bytes]:
            global _count
            with _lock:
                _count += 1
            return behind(environ, start_response)

        return passing

    return counted


def _leave() -> None:
    where = os.environ.get(WHERE)
    if where and _count:
        Path(where, str(os.getpid())).write_text(str(_count))


atexit.register(_leave)
