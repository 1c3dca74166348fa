# SPDX-License-Identifier: Apache-2.0
"""What the project's own loggers write while a test runs."""

from __future__ import annotations

import logging
from typing import Any


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{self.format(record)} {vars(record)}")


def listen(case: Any) -> list[str]:
    """Return the lines that our loggers will write, at every level.

    :param case: the test, at whose end nobody listens any more
    """
    found = _Lines()
    logger = logging.getLogger("state_policy")
    level = logger.level
    logger.addHandler(found)
    logger.setLevel(logging.DEBUG)
    case.addCleanup(logger.setLevel, level)
    case.addCleanup(logger.removeHandler, found)
    return found.lines
