# SPDX-License-Identifier: Apache-2.0
"""Callers: who sends a request, and how Nova learns of it.

Keystone is the one part of the pipeline that is not there. The request
carries the headers that keystonemiddleware would have added, and Nova's own
``RequestContext.from_environ`` makes the context of them, so roles, service
roles, ``is_admin`` and the request id come about as in a deployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nova import context


@dataclass(frozen=True)
class Person:
    """One caller: a user with roles on a project.

    :ivar service_roles: roles of the service token, as another service of
        the cloud sends it beside the user's
    """

    user_id: str
    project_id: str
    roles: tuple[str, ...] = ("member", "reader")
    service_roles: tuple[str, ...] = field(default=())

    def headers(self) -> dict[str, str]:
        """Return what keystonemiddleware adds to a request of this caller."""
        found = {
            "X-Auth-User": self.user_id,
            "X-User-Id": self.user_id,
            "X-User-Name": self.user_id,
            "X-Auth-Project-Id": self.project_id,
            "X-Project-Id": self.project_id,
            "X-Roles": ",".join(self.roles),
        }
        if self.service_roles:
            found["X-Service-Roles"] = ",".join(self.service_roles)
        return found


def make_context(environ: Mapping[str, Any], **kwargs: Any) -> Any:
    """Return Nova's own context of the headers; takes the place of a stub.

    Nova's test client names the project in X-Auth-Project-Id only.
    """
    known = dict(environ)
    known.setdefault(
        "HTTP_X_PROJECT_ID", environ.get("HTTP_X_AUTH_PROJECT_ID")
    )
    return context.RequestContext.from_environ(known, **kwargs)
