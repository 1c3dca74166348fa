# SPDX-License-Identifier: Apache-2.0
"""Random requests: near to what Nova routes, and bent in every way we know."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from random import Random
from typing import Any

from oslo_middleware.sizelimit import LimitingReader

from state_policy.engine.operations import OPERATIONS

ID = "0b1e6f0c-9a53-4d5e-8b8e-1f2a3b4c5d6e"
IDS = (
    ID, ID, ID, ID, ID,
    ID.upper(),
    ID + ".json",
    ID + " ",
    ID + "\n",
    "{" + ID + "}",
    "urn:uuid:" + ID,
    ID.replace("-", ""),
    ID.replace("a", "\xe1"),
    "detail",
    "1",
    "servers",
    "action",
    ".",
    "..",
    "a\nb",
    "\n",
    "",
    "%2e",
    "a;b=c",
    "\xc3\xa9",
    "\x00",
)  # fmt: skip
PROJECTS = (
    "", "", "", "", "",
    "/0123456789abcdef0123456789abcdef",
    "/" + ID,
    "/1",
    "/-",
    "/p",
    "/ABCDEF",
    "/abc\n",
    "/",
    "/servers",
    "/v2.1",
)  # fmt: skip
WORDS = (
    "action", "metadata", "os-interface", "tags", "migrations", "detail",
    "os-server-password", "servers", "os-volume_attachments", "consoles",
    "os-instance-actions", "os-virtual-interfaces", "os-security-groups",
    "allowed-actions", "shares", "topology", "x",
)  # fmt: skip
METHODS = (
    "GET", "POST", "POST", "POST", "PUT", "DELETE", "DELETE", "HEAD",
    "PATCH", "OPTIONS", "delete", "Post", "TRACE", "",
)  # fmt: skip
QUERIES = (
    *[""] * 12,
    "a=1",
    "_method=DELETE",
    "_method=delete",
    "_method=PUT",
    "_method=POST",
    "_method=post",
    "_method=GET",
    "_method=HEAD",
    "_method=",
    "_method",
    "a=_method",
    "x_method=PUT",
    "a=1&_method=DELETE",
    "_method=GET&_method=DELETE",
    "_method=DELETE&_method=GET",
    "_method=DELETE;a=1",
    "%5Fmethod=DELETE",
    "_method=%44ELETE",
    "_method=+DELETE",
    "_method=%ff",
    "_method=DELETE&x=%ff",
    "_method=PO%c5%bfT",
)
TYPES = (
    *["application/json"] * 10,
    None,
    "",
    "application/json; charset=UTF-8",
    "application/json ;charset=UTF-8",
    " application/json",
    "Application/JSON",
    "application/vnd.openstack.compute+json",
    "application/xml",
    "text/plain",
    "text/plain; x=y",
    "text/html",
    "application/x-www-form-urlencoded",
    "Application/X-WWW-Form-URLencoded; x=y",
    "multipart/form-data",
    "multipart/form-data; boundary=b",
    ";",
)
#: Headers that could say something about what is asked for, and their values.
#: Some do, to Nova or to what it stands on; the others must not to us either.
VERSIONS = (
    "compute 2.1", "compute 2.90", "compute latest", "compute 2.99999",
    "compute 9.9", "compute 2", "compute", "compute x", "2.90", "", " ",
    "identity 3.1", "identity 3.1, compute 2.60", "compute 2.1,compute 2.90",
    "compute  2.90 ", "Compute 2.60", "compute 2.090", "compute 0.1",
    "compute -1.1", "compute 2.1.1", "\x00", "\xe9",
)  # fmt: skip
HEADERS: dict[str, tuple[str, ...]] = {
    "HTTP_OPENSTACK_API_VERSION": VERSIONS,
    "HTTP_X_OPENSTACK_NOVA_API_VERSION": (
        "2.1", "2.90", "latest", "LATEST", "", " ", "9.9", "2.99999", "2", "x",
        "compute 2.90", "2.90 ", "2.01", "\x00",
    ),
    "HTTP_ACCEPT": (
        "", "*/*", "application/json", "application/xml", "text/html;q=0.9",
        "application/vnd.openstack.compute+json;version=2", ";", "\xff",
        "application/json;q=2", "a" * 2000,
    ),
    "HTTP_X_HTTP_METHOD_OVERRIDE": (
        "DELETE", "delete", "PUT", "POST", "GET", "", "x",
    ),
    "HTTP_X_METHOD_OVERRIDE": ("DELETE", "GET"),
    "HTTP_X_HTTP_METHOD": ("DELETE", "GET"),
    "HTTP_TRANSFER_ENCODING": (
        "chunked", "Chunked", "gzip, chunked", "identity", "", "x",
    ),
    "HTTP_CONTENT_ENCODING": ("gzip", "deflate", "identity", "", "x"),
    "HTTP_HOST": (
        "", "localhost:8774", "example.org", "[::1]", "[", ":", "a b", "\xe9",
        "localhost/servers", "\x00",
    ),
    "HTTP_X_FORWARDED_HOST": ("example.org", ""),
    "HTTP_X_FORWARDED_PREFIX": ("/v2", "/servers"),
    "HTTP_COOKIE": (
        "", "a=b", "_method=DELETE", "a", "=;", "\xff\x00", "a=" + "b" * 5000,
    ),
    "HTTP_EXPECT": ("100-continue",),
    "HTTP_RANGE": ("bytes=0-1",),
    "HTTP_CONTENT_TYPE": ("text/html",),
    "HTTP_CONTENT_LENGTH": ("0",),
}  # fmt: skip
ACTIONS = tuple(sorted({op.action for op in OPERATIONS.values() if op.action}))
OTHER_ACTIONS = (
    "os-getRDPConsole", "createSnapshot", "resetNetwork", "delete", "show",
    "action", "Reboot", "", "reboot ", "os-Stop", "__class__",
)  # fmt: skip
ARGUMENTS = (
    "null", "{}", "[]", "1", '"x"', "true", "NaN", '{"type": "SOFT"}',
    '{"type": "HARD"}', '{"type": "soft", "x": 1}', '{"type": "Hard"}',
    '{"type": "sOFT"}', '{"type": null}', '{"type": ["SOFT"]}',
    '{"type": "SOFT", "type": "HARD"}', '{"adminPass": "a\\u0000\xe9"}',
)  # fmt: skip
ODD_BODIES = (
    b"",
    b" ",
    b"null",
    b"1",
    b'"a"',
    b'"ab"',
    b"[]",
    b'["reboot"]',
    b"{}",
    b"{",
    b"\x00",
    b"\xff\xfe",
    b'{"reboot": \xff}',
    b"_method=DELETE",
    b"a=1&_method=PUT",
    b'--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE'
    b"\r\n--b--\r\n",
    b"[" * 100_000,
    b'{"lock": ' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'{"lock": ' + b"1" * 5000 + b"}",
)


class Chunks:
    """A stream that gives less than it is asked for, once in a while."""

    def __init__(self, content: bytes, random: Random) -> None:
        self._content = io.BytesIO(content)
        self._random = random

    def read(self, size: int = -1) -> bytes:
        """Return at most so many bytes, at least one if there is any."""
        if size is None or size < 0:
            return self._content.read()
        return self._content.read(min(size, self._random.randint(1, 40_000)))


class Broken(Chunks):
    """A stream that fails after so many bytes, again and again."""

    def __init__(self, content: bytes, random: Random) -> None:
        super().__init__(content[: random.randint(0, len(content))], random)

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, or fail."""
        chunk = super().read(size)
        if not chunk:
            raise OSError("the client went away")
        return chunk


#: What is bent about a request: nothing, some of it, or all.
_ASPECTS = (
    "method", "query", "type", "project", "id", "path", "body", "frame",
    "headers",
)  # fmt: skip
_COUNTS = (0, 1, 1, 1, 2, 2, 3, len(_ASPECTS))


def request(random: Random) -> tuple[dict[str, Any], Callable[[], Any], bytes]:
    """Return an environ, what makes its input anew, and the body sent."""
    bent = set(random.sample(_ASPECTS, random.choice(_COUNTS)))
    operation = random.choice(tuple(OPERATIONS.values()))
    method = operation.method
    if "method" in bent:
        method = random.choice(METHODS)
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": random.choice(("/v2.1", "/v2", "")),
        "PATH_INFO": _path(random, operation.path, bent),
        "QUERY_STRING": random.choice(QUERIES) if "query" in bent else "",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "localhost",
        "wsgi.url_scheme": "http",
        # Set by Nova's urlmap before the pipeline.
        "nova.best_content_type": "application/json",
    }
    content_type = random.choice(TYPES) if "type" in bent else TYPES[0]
    if content_type is not None:
        environ["CONTENT_TYPE"] = content_type
    if "headers" in bent:
        for name in random.sample(tuple(HEADERS), random.choice((1, 1, 2, 4))):
            environ[name] = random.choice(HEADERS[name])
    content = _body(random, operation.action, "body" in bent)
    seed = random.random()
    stream = _frame(random, environ, content, "frame" in bent)
    return environ, lambda: stream(content, Random(seed)), content


def _path(random: Random, path: str, bent: set[str]) -> str:
    server_id = random.choice(IDS) if "id" in bent else ID
    path = path.replace("{server}", server_id)
    path = path.replace("{id}", random.choice((ID, "1", "k", "a.b", "\n")))
    if "project" in bent:
        path = random.choice(PROJECTS) + path
    if "path" not in bent:
        return path
    if random.random() < 0.3:
        path = path.replace(path.split("/")[-1], random.choice(WORDS), 1)
    if random.random() < 0.4:
        path = path.replace("/servers/", "/os-volumes_boot/", 1)
    if random.random() < 0.6:
        path = random.choice(_BENT)(path, random)
    return path


def _splice(path: str, random: Random) -> str:
    place = random.randint(0, len(path))
    return path[:place] + random.choice("/.\n %;\xe9\x00?") + path[place:]


_BENT: tuple[Callable[[str, Random], str], ...] = (
    lambda path, random: path + "/",
    lambda path, random: path + "\n",
    lambda path, random: path + "\n\n",
    lambda path, random: path + "/\n",
    lambda path, random: path + ".json",
    lambda path, random: path + "/" + random.choice(WORDS),
    lambda path, random: "/" + path,
    lambda path, random: path[1:],
    lambda path, random: path.replace("/", "//", 2),
    lambda path, random: path.replace("/", "%2F", 1),
    lambda path, random: path.upper(),
    lambda path, random: path.title(),
    lambda path, random: path[: random.randint(0, len(path))],
    _splice,
)


def _body(random: Random, action: str | None, bent: bool) -> bytes:
    if not bent:
        if action is None:
            return b'{"x": 1}'
        argument = '{"type": "HARD"}' if action == "reboot" else "null"
        return f'{{"{action}": {argument}}}'.encode()
    if random.random() < 0.25:
        return random.choice(ODD_BODIES)
    name = json.dumps(random.choice((action or "reboot", *ACTIONS)))
    if random.random() < 0.1:
        name = json.dumps(random.choice(OTHER_ACTIONS))
    if random.random() < 0.2:
        place = random.randint(1, len(name) - 1)
        if name[place] not in '"\\':
            escaped = f"\\u{ord(name[place]):04x}"
            name = name[:place] + escaped + name[place + 1 :]
    if random.random() < 0.4:
        name = '"reboot"'
    text = f"{{{name}: {random.choice(ARGUMENTS)}}}"
    if random.random() < 0.4:
        text = random.choice(_BENT_BODIES)(text, name, random)
    encoding = random.choice(("utf-8",) * 9 + ("utf-16", "latin-1"))
    return text.encode(encoding, "replace")


_BENT_BODIES: tuple[Callable[[str, str, Random], str], ...] = (
    lambda text, name, random: text[:-1] + ', "x": 1}',
    lambda text, name, random: text[:-1] + f", {name}: null}}",
    lambda text, name, random: '{"x": 1, ' + text[1:],
    lambda text, name, random: "\ufeff" + text,
    lambda text, name, random: " \n\t" + text + "\n ",
    lambda text, name, random: text + "x",
    lambda text, name, random: text + text,
    lambda text, name, random: text[:-1],
    lambda text, name, random: "[" + text + "]",
    lambda text, name, random: text.replace('"', "'"),
    lambda text, name, random: text[:-1] + ",}",
    lambda text, name, random: text + " " * random.randint(0, 70_000),
)

_Stream = Callable[[bytes, Random], Any]


def _plain(content: bytes, random: Random) -> Any:
    return io.BytesIO(content)


def _limited(content: bytes, random: Random) -> Any:
    return LimitingReader(io.BytesIO(content), random.choice((10, 114688)))


def _frame(
    random: Random, environ: dict[str, Any], content: bytes, bent: bool
) -> _Stream:
    """Say in some way how long the body is, and return what reads it."""
    if not bent:
        environ["CONTENT_LENGTH"] = str(len(content))
        return _plain
    if random.random() < 0.3:
        environ["CONTENT_LENGTH"] = str(len(content))
        if random.random() < 0.5:
            environ["webob.is_body_seekable"] = True
            return _plain
        return Broken
    told = random.choice(_LENGTHS)(len(content))
    if told is not None:
        environ["CONTENT_LENGTH"] = told
        return _plain
    streams: tuple[_Stream, ...] = (Chunks, _plain, _limited, Broken)
    (stream,) = random.choices(streams, (4, 4, 1, 1))
    terminated = random.choice((True, True, False, None))
    if terminated is not None:
        environ["wsgi.input_terminated"] = terminated
    return stream


_LENGTHS: tuple[Callable[[int], str | None], ...] = (
    lambda length: None,
    lambda length: None,
    lambda length: "",
    lambda length: "0",
    lambda length: "-1",
    lambda length: "x",
    lambda length: f" {length} ",
    lambda length: f"+{length}",
    lambda length: str(length + 7),
    lambda length: str(max(0, length - 3)),
)
