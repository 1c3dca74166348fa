# SPDX-License-Identifier: Apache-2.0
"""Concealed servers look absent.

A server whose mapping names a quarantine project is absent for everybody but
administrators and that project. What an absent server looks like depends on
the request (Nova refuses some before it looks the server up), so Nova is
asked the very same of a server that does not exist, and its answer given.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine.ports.reading import Caller, Location
from state_policy.wsgi.doors import Address
from state_policy.wsgi.responses import take

#: No id that is shorter names a server; such paths (``/servers/detail``) are
#: not worth a SELECT.
SHORTEST_ID = 36


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


def _substituted(path: str, address: Address, substitute: str) -> str:
    word = "/os-volumes_boot/" if address.boot else "/servers/"
    before, _, after = path.partition(word)
    return before + word + substitute + after[len(address.server_id) :]
