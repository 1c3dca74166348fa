# SPDX-License-Identifier: Apache-2.0
"""A cloud of one process, and the rules that its operator wrote."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
os.environ.setdefault("OS_LOG_CAPTURE", "0")

import nova.tests.functional  # noqa: F401

from tests.functional import base
from tests.functional.harness import surgery

RULES = Path(__file__).with_name("state_policy.yaml")


class Cloud(base.NovaTestCase):
    """Nova, its services and its callers, as in the functional tests."""

    RULES = RULES.read_text()
    QUARANTINE = base.QUARANTINED

    def runTest(self) -> None:  # noqa: N802
        """Nothing: the story is told from outside."""

    def age(self, server_id: str, minutes: int = 61) -> None:
        """Let time pass for one server, in Nova's database."""
        surgery.make_older(server_id, minutes=minutes)


@contextlib.contextmanager
def running() -> Iterator[Cloud]:
    """Start the cloud; take it down at the end, come what may."""
    logging.disable(logging.CRITICAL)
    cloud = Cloud("runTest")
    try:
        cloud.setUp()
        yield cloud
    finally:
        cloud.doCleanups()
        logging.disable(logging.NOTSET)
