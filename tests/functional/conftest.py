# SPDX-License-Identifier: Apache-2.0
"""Prepares the process for real Nova, before anything of Nova is imported.

Nova 34 runs in native threads and its tests do so where eventlet is kept
out. Up to 33 its functional tests need eventlet's patching.
"""

from __future__ import annotations

import importlib.metadata
import os

_MAJOR = int(importlib.metadata.version("nova").split(".")[0])
os.environ.setdefault(
    "OS_NOVA_DISABLE_EVENTLET_PATCHING", "true" if _MAJOR >= 34 else "false"
)

import nova.tests.functional  # noqa: E402, F401
