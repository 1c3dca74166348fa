# SPDX-License-Identifier: Apache-2.0
"""Two answers are the same but for what no two requests have in common.

The list is meant to be short: whatever is not on it is compared byte by
byte, the order of the headers included.
"""

from __future__ import annotations

import re
from typing import Any

_UUID = re.compile(
    rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|[0-9a-f]{32}"
)
_DATE = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?")
#: sha224 of project and host: the two runs have a project each.
_HOST_ID = re.compile(rb"\b[0-9a-f]{56}\b")
#: Made up by Nova for each new server.
_PASSWORD = re.compile(rb'(?<="adminPass": ")[^"]+')


class Normal:
    """Writes answers of one run so that two runs can be compared.

    Ids become numbers in the order in which the run first saw them, so that
    one id in place of another still shows.
    """

    def __init__(self) -> None:
        self._ids: dict[bytes, bytes] = {}

    def write(self, text: bytes) -> bytes:
        """Return a text with ids, dates and made-up passwords replaced."""
        text = _HOST_ID.sub(b"<host id>", text)
        text = _UUID.sub(self._number, text)
        text = _DATE.sub(b"<date>", text)
        return _PASSWORD.sub(b"<password>", text)

    def _number(self, found: re.Match[bytes]) -> bytes:
        # An id in capitals is the same id, but must not be taken for it.
        return self._ids.setdefault(
            found.group(), b"<id %d>" % (len(self._ids) + 1)
        )


#: Made up for each request.
_PER_REQUEST = ("x-compute-request-id", "x-openstack-request-id")


def written(
    answer: Any, server_id: str
) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
    """Return an answer with a server's id and the request's left out.

    :param answer: with ``status``, ``headers`` and ``body``
    """
    body = answer.body
    for form in (server_id, server_id.upper()):
        body = body.replace(form.encode(), b"<id>")
    headers = tuple(
        (name, "<request>" if name.lower() in _PER_REQUEST else value)
        for name, value in answer.headers
    )
    return answer.status, headers, body
