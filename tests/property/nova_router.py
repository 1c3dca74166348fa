# SPDX-License-Identifier: Apache-2.0
"""The installed Nova's own router, up to the method it would call.

All of it is Nova's: routing, content types, the reading of the body,
``action_peek``, the arguments. Only the call itself is recorded instead of
made.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import inspect
import json
import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from wsgiref.types import WSGIEnvironment

from state_policy.engine.operations import OPERATIONS

_MAJOR = int(importlib.metadata.version("nova").split(".")[0])
os.environ.setdefault(
    "OS_NOVA_DISABLE_EVENTLET_PATCHING", "true" if _MAJOR >= 34 else "false"
)

_BY_ROUTE = {
    (operation.method, operation.path, operation.action): operation.name
    for operation in OPERATIONS.values()
    if operation.action != "reboot"
}


@dataclass
class Seen:
    """What Nova did with a request.

    :ivar ran: name of the operation and id of the server, or None
    :ivar unknown: what it ran on a server that is no operation of ours
    :ivar body: the body it read, None where it did not get so far
    :ivar end: the status line, or the type of what was raised
    """

    ran: tuple[str, str] | None = None
    unknown: str | None = None
    body: bytes | None = None
    end: str = ""


@dataclass
class Router:
    """Nova's application, with the last step recorded."""

    app: Any
    seen: Seen = field(default_factory=Seen)

    def ask(self, environ: WSGIEnvironment) -> Seen:
        """Send a request."""
        self.seen = seen = Seen()

        def start_response(status: str, headers: Any, info: Any = None) -> Any:
            seen.end = status
            return lambda chunk: None

        try:
            for _ in self.app(environ, start_response):
                pass
        except Exception as error:
            seen.end = type(error).__name__
        return seen

    def dispatch(self, method: Any, request: Any, arguments: Any) -> None:
        """Stand for Nova's Resource.dispatch, which calls the method."""
        try:
            inspect.signature(method).bind(req=request, **arguments)
        except TypeError:
            return
        template = _template(request.environ["routes.route"].routepath)
        # A removed method only says that it is gone.
        if template is None or getattr(method, "removed", False):
            return
        name = _operation(template, method, request, arguments)
        server_id = arguments.get("server_id", arguments.get("id"))
        if name is not None:
            self.seen.ran = (name, server_id)
        elif getattr(method, "wsgi_action", None) != "reboot":
            self.seen.unknown = f"{template} {method}"


def _template(path: str) -> str | None:
    path = path.removeprefix("/{project_id:[0-9a-f-]+}")
    if path.startswith("/os-volumes_boot/{id}"):
        path = path.replace("/os-volumes_boot/{id}", "/servers/{server}")
    path = path.replace("/servers/{server_id}", "/servers/{server}")
    if path in ("/servers/{id}", "/servers/{id}/action"):
        path = path.replace("{id}", "{server}")
    return path if path.startswith("/servers/{server}") else None


def _operation(
    template: str, method: Any, request: Any, arguments: Any
) -> str | None:
    action = getattr(method, "wsgi_action", None)
    if action == "reboot":
        return _reboot(arguments["body"])
    routed = request.environ["routes.route"].conditions["method"][0]
    return _BY_ROUTE.get((routed, template, action))


def _reboot(body: Any) -> str | None:
    from nova.api.openstack.compute.schemas import servers

    kinds = servers.reboot["properties"]["reboot"]["properties"]["type"]
    argument = body["reboot"]
    kind = argument.get("type") if isinstance(argument, dict) else None
    if not isinstance(kind, str) or kind not in kinds["enum"]:
        return None
    return f"reboot_{kind.lower()}"


@contextlib.contextmanager
def router() -> Iterator[Router]:
    """Give Nova's router, without databases, messages or other services."""
    import nova.conf
    from nova import objects, rpc
    from nova.api.openstack import wsgi
    from nova.api.openstack.compute import routes
    from oslo_messaging import conffixture

    conf = nova.conf.CONF
    if "config_file" not in conf:
        conf([], project="nova", default_config_files=[])
    messaging = conffixture.ConfFixture(conf)
    messaging.setUp()
    messaging.transport_url = "fake:/"
    rpc.init(conf)
    objects.register_all()
    made = Router(routes.APIRouterV21())

    def get_body(self: Any, request: Any) -> Any:
        kind, content = original(self, request)
        made.seen.body = content
        return kind, content

    original = wsgi.Resource.get_body
    logging.disable(logging.CRITICAL)
    try:
        with (
            mock.patch.object(wsgi.Resource, "get_body", get_body),
            mock.patch.object(
                wsgi.Resource, "dispatch", lambda self, *a: made.dispatch(*a)
            ),
        ):
            yield made
    finally:
        logging.disable(logging.NOTSET)
        rpc.cleanup()
        messaging.cleanUp()


def taken(content: bytes | None, method: str) -> bool:
    """Return whether Nova takes a body, of an operation that is no action.

    :param content: None where it could not be read
    """
    if content is None:
        return False
    try:
        text = content.decode()
        if content and method in ("POST", "PUT"):
            json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
