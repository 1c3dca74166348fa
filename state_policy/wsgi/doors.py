# SPDX-License-Identifier: Apache-2.0
"""Which operation on which server a request asks for, from its raw environ.

A request is recognised exactly where Nova would route it and run something.
The sources are nova.api.openstack.compute.routes, nova.api.openstack.wsgi
(Resource, action_peek) and the package routes, as of Nova 34.0.0; a test
compares random requests with them. Worth knowing:

* a project's id before ``/servers`` routes where it is of hex digits and
  dashes; whether it is the caller's is for the caller of this module to see;
* a newline at the end of a path is not part of what it matches;
* ``_method`` in the query string replaces the method for routing alone, so
  that ``GET /servers/{id}?_method=DELETE`` deletes;
* a content type that Nova does not know is its 415, whatever was asked;
* some operations (``os-start``, ``os-stop``, tags, shares) look the id up
  without having looked at its form, and a database whose collation ignores
  accents or blanks at the end, or takes a ligature for two letters, then finds
  the server all the same.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any
from wsgiref.types import WSGIEnvironment

import webob

from state_policy.engine.operations import OPERATIONS, Operation
from state_policy.wsgi import body

_PROJECT = re.compile(r"[0-9a-f-]+")
_PLAIN_ID = re.compile(r"[0-9A-Fa-f-]+")
_NO_ID = re.compile(r"[^0-9A-Za-z-]+")
#: No collation takes one of these for a letter that an id has.
_FOREIGN = re.compile(r"[G-Zg-z]")
_WITH_BODY = frozenset({"POST", "PUT"})
#: Of a request that may say what its body is. Nova takes no type, and this
#: one, for JSON.
_CONTENT_TYPES = frozenset(
    {
        "",
        "text/plain",
        "application/json",
        "application/vnd.openstack.compute+json",
    }
)
#: Paths of the old volume-booting API: the same servers again.
_BOOT_SHAPES = frozenset({(0,), (1, "action")})
#: As Nova's schema of ``reboot`` has it.
_REBOOTS = {
    "SOFT": "reboot_soft",
    "Soft": "reboot_soft",
    "soft": "reboot_soft",
    "HARD": "reboot_hard",
    "Hard": "reboot_hard",
    "hard": "reboot_hard",
}

#: Length of what follows the server's id, and its fixed words.
_Shape = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """A path below a server, whether Nova routes it or not.

    :ivar server_id: as the request has it
    :ivar project_id: what stands before it, or None
    :ivar shape: what stands behind it, as the table of routes has it
    """

    server_id: str
    project_id: str | None
    shape: _Shape
    boot: bool = False

    @property
    def plain(self) -> bool:
        """Return whether the id is written as Nova itself writes ids.

        Capitals do not matter.
        """
        return _PLAIN_ID.fullmatch(self.server_id) is not None

    @property
    def lookup(self) -> str:
        """Return the id as Nova would write it.

        What some collation takes for nothing is left out, and what it takes
        for a letter or digit is that.
        """
        if self.plain:
            return self.server_id
        return _NO_ID.sub("", unicodedata.normalize("NFKD", self.server_id))

    @property
    def lookups(self) -> tuple[str, ...]:
        """Return the texts to look the server up by, one after the other.

        What is the same as what only the database knows, and it is given
        what Nova gives it (on MariaDB's ``uca1400_ai_ci`` an eth is a d, an
        ash two letters). Beside that, rather one server too many is judged.
        """
        if self.plain:
            return (self.server_id,)
        if _FOREIGN.search(self.server_id):
            return ()
        return (self.server_id, self.lookup)


@dataclass(frozen=True, slots=True)
class Door:
    """What a request asks for.

    :ivar operation: None where it is no operation that Nova would run
    :ivar unknown: name of an action that is none of ours, or None
    :ivar unreadable: why the body could not be read, or None
    :ivar too_long: whether that is because it is longer than the bound
    """

    address: Address
    operation: Operation | None = None
    unknown: str | None = None
    unreadable: str | None = None
    too_long: bool = False


def address(path: str) -> Address | None:
    """Return the server that a path is below of."""
    parts = split(path)
    if len(parts) < 3 or parts[0]:
        return None
    project = None
    if parts[1] not in _COLLECTIONS:
        if len(parts) < 4 or parts[2] not in _COLLECTIONS:
            return None
        project = parts[1]
        if not _PROJECT.fullmatch(project):
            return None
        del parts[1]
    server_id = parts[2]
    if not server_id:
        return None
    return Address(
        server_id, project, _shape(parts[3:]), parts[1] != "servers"
    )


def find(
    environ: WSGIEnvironment, limit: int, boot_actions: Set[str] | None = None
) -> Door | None:
    """Return what a request asks for, None where it is about no server.

    :param limit: bytes of a body that are read to find an action's name
    :param boot_actions: those that the second address of servers takes;
        None: all
    """
    found = address(environ.get("PATH_INFO", ""))
    if found is None:
        return None
    operations = _routed(found, environ)
    if not operations:
        return Door(found)
    if None in operations:
        return Door(found, operations[None])
    door = _action(found, environ, operations, limit)
    if found.boot and _lacks(boot_actions, door.operation):
        return Door(found)
    return door


def split(path: str) -> list[str]:
    """Return the parts of a path as the expressions of routes match them.

    A ``$`` matches before a newline at the end, too.
    """
    parts = path.split("/")
    if len(parts[-1]) > 1:
        parts[-1] = parts[-1].removesuffix("\n")
    return parts


def _shape(rest: list[str]) -> _Shape:
    # Words stand at even places, ids at odd ones. An empty id never routes.
    if "" in rest:
        return (-1,)
    return (len(rest), *rest[::2])


def _routed(
    found: Address, environ: WSGIEnvironment
) -> Mapping[str | None, Operation]:
    """Return the operations behind an address by the name of the action."""
    if found.boot and found.shape not in _BOOT_SHAPES:
        return {}
    content_type = environ.get("CONTENT_TYPE", "").split(";", 1)[0]
    if content_type not in _CONTENT_TYPES:
        return {}
    method = routed_method(environ)
    if method == "GET" and found.shape == (0,) and found.server_id == "detail":
        return {}
    return _ROUTES.get((method, found.shape), {})


def routed_method(environ: WSGIEnvironment) -> str | None:
    """Return the method that Nova routes by, None where it would fail."""
    method: str = environ["REQUEST_METHOD"]
    query = environ.get("QUERY_STRING", "")
    if "_method" not in query:
        return method
    try:
        asked = webob.Request({"QUERY_STRING": query}).GET.get("_method")
    except UnicodeDecodeError:
        return method
    if not asked:
        return method
    # Nova hands the body on by the real method: what is routed to code that
    # takes one gets none, or the other way round, and fails. An empty method
    # is not restored.
    routed: str = asked.upper()
    if not method:
        return routed
    return routed if (routed in _WITH_BODY) == (method in _WITH_BODY) else None


def _action(
    found: Address,
    environ: WSGIEnvironment,
    operations: Mapping[str | None, Operation],
    limit: int,
) -> Door:
    try:
        content = body.read(environ, limit)
    except body.UnreadableError as error:
        too_long = isinstance(error, body.TooLongError)
        return Door(found, unreadable=str(error), too_long=too_long)
    peeked = _peek(content)
    if peeked is None:
        return Door(found)
    name, argument = peeked
    if name == "reboot" and name in operations:
        reboot = _reboot(argument)
        return Door(found, OPERATIONS[reboot] if reboot else None)
    operation = operations.get(name)
    return Door(found, operation, None if operation else name)


def _lacks(actions: Set[str] | None, operation: Operation | None) -> bool:
    """Return whether the second address has no such action: Nova says so."""
    return (
        actions is not None
        and operation is not None
        and operation.action not in actions
    )


def _peek(content: bytes) -> tuple[str, Any] | None:
    """Return the name and argument of the action in a body, as Nova does.

    The whole of it is read as JSON: whether there is a second key cannot be
    seen from the first.
    """
    try:
        decoded = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(decoded, dict) or len(decoded) != 1:
        return None
    ((name, argument),) = decoded.items()
    return name, argument


def _reboot(argument: Any) -> str | None:
    kind = argument.get("type") if isinstance(argument, dict) else None
    return _REBOOTS.get(kind) if isinstance(kind, str) else None


_Routes = Mapping[tuple[str | None, _Shape], Mapping[str | None, Operation]]


def _routes() -> _Routes:
    """Return the operations by method and shape, then by action."""
    routes: dict[tuple[str | None, _Shape], dict[str | None, Operation]] = {}
    for operation in OPERATIONS.values():
        parts = operation.path.split("/")
        key = (operation.method, _shape(parts[3:]))
        routes.setdefault(key, {})[operation.action] = operation
    return routes


_ROUTES = _routes()
_COLLECTIONS = frozenset({"servers", "os-volumes_boot"})
