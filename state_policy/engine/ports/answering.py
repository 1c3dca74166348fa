# SPDX-License-Identifier: Apache-2.0
"""How an answer gets the very form the API itself gives it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol
from wsgiref.types import WSGIApplication, WSGIEnvironment

from state_policy.engine.operations import Operation


class Answers(Protocol):
    """Makes answers that clients cannot tell from the API's own."""

    def boot_actions(self) -> frozenset[str] | None:
        """Return the actions that the second address of servers takes.

        :returns: by their names in a body; None where that cannot be told:
            then every action of a server may be there
        """

    def version_accepted(self, environ: WSGIEnvironment) -> bool:
        """Return whether the API takes the microversion asked for.

        Asked before any act: a request the API refuses is the API's to
        refuse.
        """

    def version(self, environ: WSGIEnvironment) -> tuple[int, int] | None:
        """Return the microversion by which the API takes a request.

        :returns: None where it refuses what was asked for
        """

    def fault(
        self,
        environ: WSGIEnvironment,
        code: int,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        retry_after: int | None = None,
    ) -> WSGIApplication:
        """Return a refusal in the API's body shape and version headers.

        :param details: further keys beside ``message``, inside the same object
        :param retry_after: seconds; becomes an integer header
        """

    def not_found(
        self, environ: WSGIEnvironment, server_id: str
    ) -> WSGIApplication:
        """Return the API's own 404 for a server that does not exist."""

    def accepted(
        self, environ: WSGIEnvironment, operation: Operation
    ) -> WSGIApplication:
        """Return the API's own success: 204 for DELETE, 202 for actions."""

    def told(
        self, environ: WSGIEnvironment, content: Mapping[str, Any]
    ) -> WSGIApplication:
        """Return content as the API's own 200 would have it.

        To a version that the API does not take, the API's refusal of it.
        """
