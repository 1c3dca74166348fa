# SPDX-License-Identifier: Apache-2.0
"""Reading a request's body ahead of the API, which still reads all of it.

What the API sees afterwards is what was sent, byte for byte, also where the
body is too long, ends early or cannot be read: then the part that was read is
put back before the rest, and the API meets the same end.
"""

from __future__ import annotations

import io
import sys
from typing import Any
from wsgiref.types import WSGIEnvironment

_CHUNK = 65535
_SEEKABLE = "webob.is_body_seekable"


class UnreadableError(Exception):
    """The body is longer than the bound, ends early or cannot be read."""


class TooLongError(UnreadableError):
    """The body is longer than the bound.

    The API may take it all the same, unlike one that ends early or that it
    cannot read either.
    """

    def __init__(self) -> None:
        super().__init__("longer than the bound")


def read(environ: WSGIEnvironment, limit: int) -> bytes:
    """Return the body and put it back.

    Which requests have a body at all is WebOb's rule: one whose length is
    told and is not 0, or whose server says that its input ends by itself.

    :param limit: bytes; a longer body is not read
    :raises UnreadableError: the request is as it was, for the API to judge
    """
    length = _length(environ)
    if length is None:
        if not _terminated(environ):
            return b""
    elif length <= 0:
        return b""
    elif length > limit:
        raise TooLongError
    content = _take(environ, length, limit)
    environ["wsgi.input"] = io.BytesIO(content)
    environ["CONTENT_LENGTH"] = str(len(content))
    environ[_SEEKABLE] = True
    return content


def is_text(environ: WSGIEnvironment) -> bool:
    """Return whether the API can read the body at all; put it back.

    Nova writes the body of every request to its debug log, whether the
    operation takes one or not, and fails where it is no UTF-8
    (nova.api.openstack.wsgi.Resource, 34.0.0). It reads all of it, so there
    is no bound here.
    """
    try:
        read(environ, sys.maxsize).decode("utf-8")
    except (UnreadableError, UnicodeDecodeError):
        return False
    return True


def _length(environ: WSGIEnvironment) -> int | None:
    try:
        return int(environ.get("CONTENT_LENGTH") or "")
    except ValueError:
        return None


def _terminated(environ: WSGIEnvironment) -> bool:
    return bool(
        environ.get(
            "wsgi.input_terminated", environ.get("webob.is_body_readable")
        )
    )


def _take(environ: WSGIEnvironment, length: int | None, limit: int) -> bytes:
    """Return the whole body, or put back what was read and raise."""
    source = environ["wsgi.input"]
    if environ.get(_SEEKABLE):
        source.seek(0)
    wanted = limit + 1 if length is None else length
    parts: list[bytes] = []
    reason = _collect(source, wanted, length is not None, parts)
    content = b"".join(parts)
    error = UnreadableError(reason) if reason is not None else None
    if error is None and length is None and len(content) > limit:
        error = TooLongError()
    if error is not None:
        _put_back(environ, content, source)
        raise error
    return content


def _collect(
    source: Any, wanted: int, all_there: bool, parts: list[bytes]
) -> str | None:
    """Add up to so many bytes to the parts; return what went wrong.

    :param all_there: fewer bytes than asked for are an error, as to WebOb
        where the length is told
    """
    missing = wanted
    while missing > 0:
        asked = min(missing, _CHUNK)
        try:
            chunk = source.read(asked)
        except Exception as error:  # noqa: BLE001
            # Of a server, or of a filter that bounds the size. The API meets
            # it when it reads on, and answers as it does without us.
            return type(error).__name__
        parts.append(chunk)
        missing -= len(chunk)
        if all_there and len(chunk) < asked:
            return "shorter than its length"
        if not chunk:
            return None
    return None


def _put_back(environ: WSGIEnvironment, content: bytes, source: Any) -> None:
    if environ.get(_SEEKABLE):
        source.seek(0)
    else:
        environ["wsgi.input"] = _Joined(content, source)


class _Joined(io.RawIOBase):
    """Bytes, then whatever else a stream gives.

    Not buffered: who reads must meet the end of the first part as a short
    read, for to WebOb that is how a client that went away looks.
    """

    def __init__(self, first: bytes, rest: Any) -> None:
        self._first = memoryview(first)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if self._first:
            chunk = bytes(self._first[: len(buffer)])
            self._first = self._first[len(chunk) :]
        else:
            chunk = self._rest.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)
