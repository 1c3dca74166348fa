# SPDX-License-Identifier: Apache-2.0
"""Concealed servers look absent.

A server whose mapping names a quarantine project is absent for everybody but
administrators and that project. What an absent server looks like depends on
the request (Nova refuses some before it looks the server up), so Nova is
asked the very same of a server that does not exist, and its answer given.

Where it cannot be told whose a server is, nobody is told anything from whom it
might be concealed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine.ports.reading import Caller, Location
from state_policy.wsgi.doors import Address
from state_policy.wsgi.responses import take

#: No id that is shorter names a server, though every character of it stood for
#: two; such paths (``/servers/detail``) are not worth a SELECT.
SHORTEST_ID = 18


class Guard:
    """Stands before servers in quarantine.

    :param projects: ids of the quarantine projects
    """

    def __init__(self, projects: Collection[str]) -> None:
        self._projects = frozenset(projects)

    def hides(self, caller: Caller, location: Location) -> bool:
        """Return whether a server is concealed from a caller."""
        return (
            location.project_id in self._projects
            and not caller.is_admin
            and caller.project_id != location.project_id
        )

    def might_hide(self, caller: Caller) -> bool:
        """Return whether any server could be concealed from a caller."""
        return not caller.is_admin and bool(
            self._projects - {caller.project_id}
        )


def absent(app: WSGIApplication, address: Address) -> WSGIApplication:
    """Return an application that answers as if the server did not exist."""
    substitute = str(uuid.uuid4())
    if address.server_id == address.server_id.upper():
        substitute = substitute.upper()

    def answer(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        asked = dict(environ)
        asked["PATH_INFO"] = _substituted(
            environ["PATH_INFO"], address, substitute
        )
        found = take(app, asked)
        told = found.with_body(
            found.body.replace(substitute.encode(), address.server_id.encode())
        )
        return told(environ, start_response)

    return answer


def looked_at_later(
    app: WSGIApplication,
    hidden: Callable[[], bool],
    otherwise: Callable[[WSGIEnvironment], WSGIApplication],
) -> WSGIApplication:
    """Return the application, whose answer is looked at before it is sent.

    For who may not be kept waiting although it cannot be told whose a server
    is. Whatever could not be read before, the application has read since.

    :param hidden: looks again
    :param otherwise: returns what to answer where it is hidden
    """

    def answer(
        environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        found: WSGIApplication = take(app, environ)
        if hidden():
            found = otherwise(environ)
        return found(environ, start_response)

    return answer


def _substituted(path: str, address: Address, substitute: str) -> str:
    word = "/os-volumes_boot/" if address.boot else "/servers/"
    before, _, after = path.partition(word)
    return before + word + substitute + after[len(address.server_id) :]
