# SPDX-License-Identifier: Apache-2.0
"""Ids compared as MariaDB compares them, on SQLite.

MariaDB's usual collations take capitals for small letters, so that Nova finds
a server by its id in capitals. SQLite does not; here each comparison with an
id is told to.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import sqlalchemy.event
from sqlalchemy.engine import Engine

_ID = re.compile(r"(\b(?:instance_)?uuid = \?)")


@contextlib.contextmanager
def without_case() -> Iterator[None]:
    """Have every database find ids in capitals too."""
    sqlalchemy.event.listen(
        Engine, "before_cursor_execute", _told, retval=True
    )
    try:
        yield
    finally:
        sqlalchemy.event.remove(Engine, "before_cursor_execute", _told)


def _told(
    _conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any
) -> tuple[str, Any]:
    return _ID.sub(r"\1 COLLATE NOCASE", statement), parameters
