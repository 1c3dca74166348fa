# SPDX-License-Identifier: Apache-2.0
"""Ids compared as MariaDB compares them, on SQLite.

MariaDB's usual collations take capitals for small letters, so that Nova finds
a server by its id in capitals. Newer ones (``uca1400_ai_ci``, the default
since 11.6) take an eth for a d and an ash for two letters beside. SQLite does
not; here each comparison with an id is told to.
"""

from __future__ import annotations

import contextlib
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import sqlalchemy.event
from sqlalchemy.engine import Engine

_ID = re.compile(r"(\b(?:instance_)?uuid = \?)")


@contextlib.contextmanager
def without_case() -> Iterator[None]:
    """Have every database find ids in capitals and with accents too."""
    sqlalchemy.event.listen(
        Engine, "before_cursor_execute", _told, retval=True
    )
    try:
        yield
    finally:
        sqlalchemy.event.remove(Engine, "before_cursor_execute", _told)


def _told(
    conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any
) -> tuple[str, Any]:
    conn.connection.dbapi_connection.create_collation("uca", _compared)
    return _ID.sub(r"\1 COLLATE uca", statement), parameters


def _compared(one: str, other: str) -> int:
    weights = _weights(one), _weights(other)
    return (weights[0] > weights[1]) - (weights[0] < weights[1])


def _weights(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text.casefold())
    letters = letters.replace("\xe6", "ae").replace("\xf0", "d")
    return "".join(c for c in letters if c.isalnum() or c == "-")
