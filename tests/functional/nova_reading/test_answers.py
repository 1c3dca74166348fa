# SPDX-License-Identifier: Apache-2.0
"""Answers of the driver against Nova's own, byte for byte.

The driver's answer is given in the very place where the filter stands: just
before Nova's router, inside both pipelines.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from typing import Any

import nova.api.openstack  # noqa: F401 completes WebOb for nova.api.wsgi
from nova.api import wsgi

from state_policy.engine.operations import OPERATIONS
from tests.functional import base
from tests.functional.base import Answer
from tests.functional.nova_reading.reading import ReadingTestCase

#: Differ from request to request.
OWN = {"x-openstack-request-id", "x-compute-request-id", "date"}

VERSIONS: tuple[dict[str, Any], ...] = (
    {"microversion": None},
    {"microversion": "2.1"},
    {"microversion": "2.90"},
    {"microversion": "latest"},
    {
        "microversion": None,
        "headers": {"X-OpenStack-Nova-API-Version": "2.60"},
    },
    {
        "microversion": "2.90",
        "headers": {
            "Accept": "application/vnd.openstack.compute+json",
            "Accept-Language": "de",
        },
    },
)
WAYS = tuple(itertools.product(("/v2.1", "/v2"), VERSIONS))


def plain(answer: Answer) -> tuple[int, list[tuple[str, str]], bytes]:
    """Return an answer without what is its own alone."""
    headers = [(k, v) for k, v in answer.headers if k.lower() not in OWN]
    return answer.status, headers, answer.body


class AnswersTestCase(ReadingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.instead: Callable[[Any], Any] | None = None
        real = vars(wsgi.Router)["__call__"]

        def call(router: Any, environ: Any, start_response: Any) -> Any:
            if self.instead is None:
                return real.__get__(router)(environ, start_response)
            answer = self.instead(environ)
            return answer(environ, start_response)

        self.stub_out(
            "nova.api.openstack.compute.routes.APIRouterV21.__call__", call
        )

    def assert_same(
        self, instead: Callable[[Any], Any], method: str, path: str, **how: Any
    ) -> None:
        """Compare Nova's answer to a request with the one made here."""
        theirs = self.ask(method, path, **how)
        self.instead = instead
        try:
            ours = self.ask(method, path, **how)
        finally:
            self.instead = None
        assert plain(ours) == plain(theirs), how


class TestRefusals(AnswersTestCase):
    def test_refusals(self) -> None:
        """One Nova for all."""
        for check in (
            self.absent_server,
            self.conflict,
            self.forbidden,
            self.details_and_retry_after,
            self.brake_and_unavailable,
        ):
            check()

    def absent_server(self) -> None:
        absent = str(uuid.uuid4())
        for (prefix, version), path in itertools.product(
            WAYS, ("", "/os-instance-actions", "/os-interface")
        ):
            self.assert_same(
                lambda e: self.driver.answers.not_found(e, absent),
                "GET",
                f"/servers/{absent}{path}",
                prefix=prefix,
                **version,
            )

    def conflict(self) -> None:
        server = self.boot()
        text = (
            f"Cannot 'start' instance {server} while it is in vm_state active"
        )
        for prefix, version in WAYS:
            self.assert_same(
                lambda e: self.driver.answers.fault(e, 409, text),
                "POST",
                f"/servers/{server}/action",
                body={"os-start": None},
                prefix=prefix,
                **version,
            )

    def forbidden(self) -> None:
        server = self.boot()
        text = (
            "Policy doesn't allow os_compute_api:servers:delete to be "
            "performed."
        )
        for prefix, version in WAYS:
            self.assert_same(
                lambda e: self.driver.answers.fault(e, 403, text),
                "DELETE",
                f"/servers/{server}",
                who=base.READER,
                prefix=prefix,
                **version,
            )

    def details_and_retry_after(self) -> None:
        def instead(environ: Any) -> Any:
            return self.driver.answers.fault(
                environ,
                409,
                "no \u2013 later",
                details={"decision": "d1", "code": 1, "facts": {"a": None}},
                retry_after=30,
            )

        self.instead = instead
        answer = self.ask("DELETE", f"/servers/{uuid.uuid4()}")
        assert answer.status == 409
        assert answer.header("Retry-After") == "30"
        assert answer.header("Content-Type") == (
            "application/json; charset=UTF-8"
        )
        assert answer.header("Content-Length") == str(len(answer.body))
        # What is Nova's stays Nova's.
        assert answer.json == {
            "conflictingRequest": {
                "code": 409,
                "message": "no \u2013 later",
                "decision": "d1",
                "facts": {"a": None},
            }
        }

    def brake_and_unavailable(self) -> None:
        for code, key, more in (
            (429, "overLimit", {"retryAfter": "7"}),
            (503, "serviceUnavailable", {}),
            (403, "forbidden", {}),
        ):
            self.instead = lambda e, code=code: self.driver.answers.fault(
                e, code, "not now", retry_after=7
            )
            answer = self.ask("DELETE", f"/servers/{uuid.uuid4()}")
            assert answer.status == code
            assert answer.header("Retry-After") == "7"
            assert answer.json == {
                key: {"code": code, "message": "not now", **more}
            }


class TestSuccesses(AnswersTestCase):
    def test_successes(self) -> None:
        """One Nova for both."""
        for check in (
            self.delete,
            self.force_delete,
        ):
            check()

    def delete(self) -> None:
        for prefix, version in WAYS[::2]:
            server = self.boot()
            self.assert_same(
                lambda e: self.driver.answers.accepted(
                    e, OPERATIONS["delete"]
                ),
                "DELETE",
                f"/servers/{server}",
                prefix=prefix,
                **version,
            )

    def force_delete(self) -> None:
        for prefix, version in WAYS[::2]:
            server = self.boot()
            self.assert_same(
                lambda e: self.driver.answers.accepted(
                    e, OPERATIONS["force_delete"]
                ),
                "POST",
                f"/servers/{server}/action",
                body={"forceDelete": None},
                prefix=prefix,
                **version,
            )


class TestFrame(AnswersTestCase):
    """What Nova refuses before it looks at the server is Nova's to refuse."""

    def test_frame(self) -> None:
        """One Nova for both."""
        for check in (
            self.as_nova_has_it,
            self.in_front_of_the_wrapper_of_the_old_api,
        ):
            check()

    def accepted(self, path: str, **how: Any) -> bool:
        seen: list[bool] = []

        def instead(environ: Any) -> Any:
            before = dict(environ)
            seen.append(self.driver.answers.version_accepted(environ))
            assert environ == before  # Nova gets it as it came
            return self.driver.answers.fault(environ, 409, "seen")

        self.instead = instead
        self.ask("DELETE", path, **how)
        self.instead = None
        (found,) = seen
        return found

    def as_nova_has_it(self) -> None:
        absent = f"/servers/{uuid.uuid4()}"
        own = f"/{base.OWNER_PROJECT}{absent}"
        foreign = f"/{base.FOREIGN_PROJECT}{absent}"
        for path, how in (
            (absent, {"microversion": "2.90"}),
            (absent, {"microversion": None}),
            (absent, {"microversion": "latest"}),
            (absent, {"microversion": "9.9"}),
            (absent, {"microversion": "2.0"}),
            (absent, {"microversion": "two"}),
            (absent, {"microversion": "9.9", "prefix": "/v2"}),
            (absent, {"headers": {"Content-Type": "text/xml"}}),
            (absent, {"headers": {"Content-Type": "text/plain"}}),
            (absent, {"headers": {"Content-Type": "application/json"}}),
            (own, {}),
            (foreign, {}),
        ):
            answer = self.ask("DELETE", path, **how)
            # An absent server: 404 means that the frame was good.
            good = answer.status == 404
            assert answer.status in (400, 404, 406, 415), answer
            assert self.accepted(path, **how) is good, (path, how, answer)

    def in_front_of_the_wrapper_of_the_old_api(self) -> None:
        """A filter put before legacy_v2_compatible answers the same."""
        absent = str(uuid.uuid4())
        environ = {
            "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "/v2",
            "PATH_INFO": f"/servers/{absent}",
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "wsgi.url_scheme": "http",
            "HTTP_X_OPENSTACK_NOVA_API_VERSION": "2.90",
        }
        before = dict(environ)
        seen: list[Any] = []
        app = self.driver.answers.not_found(environ, absent)
        body = b"".join(app(environ, lambda *a: seen.append(a)))  # type: ignore
        theirs = self.ask("GET", f"/servers/{absent}", prefix="/v2")
        ((status, headers),) = seen
        assert status.startswith("404")
        assert (404, headers, body) == plain(theirs)
        # Nova will not see these headers, so neither do we.
        for asked in ("compute 2.56", "compute 9.9"):
            again = {**before, "HTTP_OPENSTACK_API_VERSION": asked}
            assert self.driver.answers.version(again) == (2, 1), asked
            assert self.driver.answers.version_accepted(again), asked
