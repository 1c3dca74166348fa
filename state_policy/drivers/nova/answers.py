# SPDX-License-Identifier: Apache-2.0
"""Answers that clients cannot tell from Nova's own.

Made by Nova's own classes (nova.api.openstack.wsgi, 34.0.0): the body's one
key, the version headers, the order of both. Imported when the first answer is
made, not before: up to Nova 32 the import patches the process for eventlet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from oslo_log import log as logging

from state_policy.drivers.nova import routes
from state_policy.engine.operations import Operation

LOG = logging.getLogger(__name__)

#: Of a microversion (nova.api.openstack, LegacyV2CompatibleWrapper, 34.0.0).
_VERSION_HEADERS = (
    "HTTP_OPENSTACK_API_VERSION",
    "HTTP_X_OPENSTACK_NOVA_API_VERSION",
)


class Answers:
    """Makes answers in Nova's form, through both of its pipelines."""

    def boot_actions(self) -> frozenset[str] | None:
        """Return the actions at ``/os-volumes_boot``; None: cannot be told."""
        try:
            return routes.boot_actions()
        except Exception as error:  # noqa: BLE001
            LOG.warning("cannot read the routes of this Nova: %r", error)
            return None

    def version_accepted(self, environ: WSGIEnvironment) -> bool:
        """Return whether Nova takes the request as far as its frame goes.

        Its microversion, its content type, and the project in its path; what
        is wrong with any of them Nova says before it looks at the server.
        """
        from nova import exception

        request = _request(_seen_by_nova(environ))
        try:
            request.set_api_version_request()
            request.get_content_type()
        except exception.Invalid:
            return False
        return _own_project(environ)

    def version(self, environ: WSGIEnvironment) -> tuple[int, int] | None:
        """Return the microversion by which Nova takes a request.

        :returns: None where it refuses what was asked for
        """
        from nova import exception

        request = _request(_seen_by_nova(environ))
        try:
            request.set_api_version_request()
        except exception.Invalid:
            return None
        version = request.api_version_request
        return version.ver_major, version.ver_minor

    def fault(
        self,
        environ: WSGIEnvironment,
        code: int,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> WSGIApplication:
        """Return a refusal in Nova's form.

        :param details: further keys beside ``message``, inside the same
            object
        :param retry_after: seconds; becomes an integer header
        """
        import webob.exc

        headers = {}
        if retry_after is not None:
            headers["Retry-After"] = str(int(retry_after))
        error = webob.exc.status_map[code](
            explanation=message, headers=headers
        )
        return _wrapped(environ, _Refusal(error, dict(details or {})))

    def not_found(
        self, environ: WSGIEnvironment, server_id: str
    ) -> WSGIApplication:
        """Return Nova's own 404 for a server that does not exist."""
        from nova import exception

        error = exception.InstanceNotFound(instance_id=server_id)
        return self.fault(environ, 404, error.format_message())

    def accepted(
        self, environ: WSGIEnvironment, operation: Operation
    ) -> WSGIApplication:
        """Return Nova's own success: 204 for DELETE, 202 for actions."""
        code = (
            HTTPStatus.NO_CONTENT
            if operation.method == "DELETE"
            else HTTPStatus.ACCEPTED
        )
        return _wrapped(environ, _Success(int(code)))

    def told(
        self, environ: WSGIEnvironment, content: Mapping[str, Any]
    ) -> WSGIApplication:
        """Return content as Nova's own 200 would have it.

        What Nova answers to a version that it cannot read or does not have
        is in nova.api.openstack.wsgi.Resource, 34.0.0.
        """
        from nova import exception

        try:
            _request(_seen_by_nova(environ)).set_api_version_request()
        except exception.InvalidAPIVersionString as error:
            return self.fault(environ, 400, error.format_message())
        except exception.InvalidGlobalAPIVersion as error:
            return self.fault(environ, 406, error.format_message())
        return _wrapped(environ, _Success(HTTPStatus.OK, content))


class _Refusal:
    """A WSGI application that answers with one of Nova's faults."""

    def __init__(self, error: Any, details: Mapping[str, Any]) -> None:
        self._error = error
        self._details = details

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        from nova.api.openstack import wsgi
        from oslo_serialization import jsonutils

        request = _versioned(environ)
        response = request.get_response(wsgi.Fault(self._error))
        # There is none to HEAD, which Nova routes as DELETE if told so.
        if self._details and response.body:
            body = jsonutils.loads(response.body)
            for inner in body.values():
                inner.update(
                    {k: v for k, v in self._details.items() if k not in inner}
                )
            response.text = jsonutils.dumps(body)
        answer: Iterable[bytes] = response(environ, start_response)
        return answer


class _Success:
    """A WSGI application that answers as Nova does to what it took on."""

    def __init__(
        self, code: int, content: Mapping[str, Any] | None = None
    ) -> None:
        self._code = code
        self._content = content

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        from nova.api.openstack import wsgi

        request = _versioned(environ)
        response = wsgi.ResponseObject(
            self._content, code=int(self._code)
        ).serialize(request, request.best_match_content_type())
        version = request.api_version_request
        if not version.is_null():
            text = version.get_string()
            new = wsgi.API_VERSION_REQUEST_HEADER
            old = wsgi.LEGACY_API_VERSION_REQUEST_HEADER
            response.headers[new] = f"compute {text}"
            response.headers[old] = text
            response.headers.add("Vary", new)
            response.headers.add("Vary", old)
        answer: Iterable[bytes] = response(environ, start_response)
        return answer


def _request(environ: WSGIEnvironment) -> Any:
    from nova.api.openstack import wsgi

    return wsgi.Request(environ)


def _versioned(environ: WSGIEnvironment) -> Any:
    """Return Nova's request with the version the client asked for, if any.

    Made on the request's own environment: Nova's request log reads the
    version from there.
    """
    from nova import exception

    request = _request(environ)
    # Nova's own refusal of a version it does not know names none either.
    with contextlib.suppress(exception.Invalid):
        request.set_api_version_request()
    return request


def _wrapped(
    environ: WSGIEnvironment, app: WSGIApplication
) -> WSGIApplication:
    """Put Nova's wrapper of its old API around an answer, where it is due.

    A filter behind ``legacy_v2_compatible`` is inside it already; before it,
    the answer must lose its version headers like any other.
    """
    from nova.api import openstack

    if _before_legacy(environ):
        wrapped: WSGIApplication = openstack.LegacyV2CompatibleWrapper(app)
        return wrapped
    return app


def _before_legacy(environ: WSGIEnvironment) -> bool:
    """Return whether ``legacy_v2_compatible`` comes behind the filter."""
    from nova.api.openstack import wsgi

    legacy = environ.get("SCRIPT_NAME", "").rstrip("/").endswith("/v2")
    return legacy and not environ.get(wsgi.ENV_LEGACY_V2)


def _seen_by_nova(environ: WSGIEnvironment) -> WSGIEnvironment:
    """Return a copy without what Nova takes away behind the filter.

    ``/v2`` knows no microversions: their headers count for nothing there.
    """
    copy = _copy(environ)
    if _before_legacy(environ):
        for header in _VERSION_HEADERS:
            copy.pop(header, None)
    return copy


def _copy(environ: WSGIEnvironment) -> WSGIEnvironment:
    # WebOb keeps the attributes of a request in its environment.
    return {k: v for k, v in environ.items() if not k.startswith("webob.")}


def _own_project(environ: WSGIEnvironment) -> bool:
    """Return whether a project in the path, if any, is the caller's."""
    first, _, rest = environ.get("PATH_INFO", "").lstrip("/").partition("/")
    if not rest or first in ("servers", "os-volumes_boot"):
        return True
    context = environ.get("nova.context")
    return context is None or context.project_id == first
