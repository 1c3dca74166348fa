# SPDX-License-Identifier: Apache-2.0
"""Prepares the process for real Nova, before anything of Nova is imported.

Nova 34 runs in native threads and its tests do so where eventlet is kept
out. Up to 33 its functional tests need eventlet's patching.
"""

from __future__ import annotations

import gc
import importlib.metadata
import os
from collections.abc import Iterator

import pytest

_MAJOR = int(importlib.metadata.version("nova").split(".")[0])
os.environ.setdefault(
    "OS_NOVA_DISABLE_EVENTLET_PATCHING", "true" if _MAJOR >= 34 else "false"
)

import nova.tests.functional  # noqa: E402, F401


def pytest_collection_finish() -> None:
    """Keep the collector of garbage from all that stays anyhow.

    A fifth of the time went into looking at Nova's modules again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(autouse=True)
def no_pools_left() -> Iterator[None]:
    """Leave no thread pool of Nova's to the next test.

    Nova's own test cases do so themselves and refuse to begin where somebody
    else did not; tests that are plain functions have this.
    """
    yield
    if _MAJOR >= 34:
        from nova import thread_pool_factory

        thread_pool_factory.FACTORY._teardown_all(mark_shutdown=False)
