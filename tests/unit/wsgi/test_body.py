# SPDX-License-Identifier: Apache-2.0
"""A body is read once, bounded, and reaches the API as it was sent."""

from __future__ import annotations

import io
from typing import Any

import pytest
import webob
import webob.exc
from oslo_middleware import sizelimit

from state_policy.wsgi import body

CONTENT = bytes(range(256)) * 4


class Slow:
    """Gives a few bytes at a time, and no more than there are."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def read(self, size: int = -1) -> bytes:
        """Return up to 100 bytes."""
        return self._content.read(min(size, 100))


class Broken:
    """Fails in the middle."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def read(self, size: int = -1) -> bytes:
        """Return up to 100 bytes, or fail."""
        chunk = self._content.read(min(size, 100))
        if not chunk:
            raise OSError("gone")
        return chunk


def framed(**more: Any) -> dict[str, Any]:
    """Return an environ with a body."""
    return {
        "REQUEST_METHOD": "POST",
        "wsgi.input": io.BytesIO(CONTENT),
        "CONTENT_LENGTH": str(len(CONTENT)),
        **more,
    }


def left(environ: dict[str, Any]) -> bytes:
    """Return what WebOb reads afterwards, as Nova does."""
    return webob.Request(environ).body


def test_read_and_put_back() -> None:
    environ = framed()
    assert body.read(environ, 2000) == CONTENT
    assert left(environ) == CONTENT
    assert environ["webob.is_body_seekable"] is True


def chunked(stream: Any = None) -> dict[str, Any]:
    """Return an environ with a body of untold length."""
    environ = framed(**{"wsgi.input_terminated": True})
    environ["wsgi.input"] = stream or Slow(CONTENT)
    del environ["CONTENT_LENGTH"]
    return environ


def test_chunked() -> None:
    environ = chunked()
    assert body.read(environ, 2000) == CONTENT
    assert environ["CONTENT_LENGTH"] == str(len(CONTENT))
    assert left(environ) == CONTENT


def test_no_length_and_no_end_is_no_body() -> None:
    environ = framed()
    del environ["CONTENT_LENGTH"]
    assert body.read(environ, 2000) == b""
    assert left(environ) == b""


@pytest.mark.parametrize("length", ["0", "-3"])
def test_no_length(length: str) -> None:
    environ = framed(CONTENT_LENGTH=length)
    assert body.read(environ, 2000) == b""


def test_exactly_the_bound() -> None:
    assert body.read(framed(), len(CONTENT)) == CONTENT


def test_one_byte_beyond_the_bound() -> None:
    environ = framed()
    stream = environ["wsgi.input"]
    with pytest.raises(body.UnreadableError, match="longer"):
        body.read(environ, len(CONTENT) - 1)
    assert environ["wsgi.input"] is stream
    assert left(environ) == CONTENT


def test_chunked_beyond_the_bound() -> None:
    environ = chunked()
    with pytest.raises(body.UnreadableError, match="longer"):
        body.read(environ, 500)
    assert "CONTENT_LENGTH" not in environ
    assert left(environ) == CONTENT


def test_shorter_than_its_length() -> None:
    environ = framed(CONTENT_LENGTH="5000")
    with pytest.raises(body.UnreadableError, match="shorter"):
        body.read(environ, 9000)
    with pytest.raises(OSError):
        left(environ)
    with pytest.raises(OSError):
        left(framed(CONTENT_LENGTH="5000"))


def test_short_read_of_a_told_length_is_its_end() -> None:
    environ = framed(**{"wsgi.input": Slow(CONTENT)})
    with pytest.raises(body.UnreadableError, match="shorter"):
        body.read(environ, 9000)
    with pytest.raises(OSError):
        left(environ)
    with pytest.raises(OSError):
        left(framed(**{"wsgi.input": Slow(CONTENT)}))


def test_failing_stream_fails_for_the_api_too() -> None:
    environ = chunked(Broken(CONTENT[:300]))
    with pytest.raises(body.UnreadableError, match="OSError"):
        body.read(environ, 9000)
    with pytest.raises(OSError, match="gone"):
        left(environ)


def test_bound_of_another_filter_is_its_own_refusal() -> None:
    stream = sizelimit.LimitingReader(io.BytesIO(CONTENT), 500)
    environ = chunked(stream)
    with pytest.raises(body.UnreadableError, match="TooLarge"):
        body.read(environ, 9000)
    with pytest.raises(webob.exc.HTTPRequestEntityTooLarge):
        left(environ)


def test_seekable_stays_seekable() -> None:
    stream = io.BytesIO(CONTENT)
    stream.read(10)
    environ = framed(**{"wsgi.input": stream, "webob.is_body_seekable": True})
    assert body.read(environ, 9000) == CONTENT
    assert left(environ) == CONTENT
