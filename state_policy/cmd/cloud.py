# SPDX-License-Identifier: Apache-2.0
"""What a command works with that reads a cloud: an API host's Nova.

The command runs with that host's nova.conf and api-paste.ini and reads Nova's
databases in its own process, as the filter does.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg

from state_policy import deploy
from state_policy.cmd import config, exits
from state_policy.conf import Settings
from state_policy.engine.facts import CALLER
from state_policy.engine.ports.reading import (
    Caller,
    Location,
    Reader,
    UnreadError,
)

#: What tokens of a plain user hold: Keystone adds what a role implies.
ROLES = ("member", "reader")
#: Who is not the owner of a server, unless it is said who.
_STRANGER = {"user_id": "not-the-owner", "project_id": "not-the-owner"}
#: Not for the command line: roles have an option, and Nova's own policy says
#: who is an administrator.
_NO_TEXT = ("roles", "is_admin", "is_admin_project", "service_roles")


@dataclass(frozen=True, slots=True)
class Cloud:
    """A driver, and what is read through it.

    :ivar reader: reads facts, those of third parties' kinds included
    """

    settings: Settings
    driver: deploy.Driver
    reader: Reader

    def locate(self, server_id: str) -> Location:
        """Return where a server is.

        :raises CommandError: where there is none, or that cannot be told
        """
        try:
            found = self.reader.locate(server_id)
        except UnreadError as error:
            raise exits.CommandError(
                f"server `{server_id}` cannot be looked up now"
            ) from error
        if found is None:
            raise exits.CommandError(f"no server `{server_id}`")
        return found

    def person(
        self,
        location: Location,
        *,
        owner: bool,
        roles: tuple[str, ...],
        more: Mapping[str, str],
    ) -> Caller:
        """Return a caller to judge: the owner of a server, or a stranger.

        :param more: any other credential
        :raises CommandError: for a credential that cannot be given so
        """
        for key in _NO_TEXT:
            if key in more:
                raise exits.CommandError(
                    f"`{key}` cannot be given beside --server: it follows "
                    "from the roles",
                    exits.USAGE,
                )
        known = self._owner(location) if owner else _STRANGER
        return self.driver.caller_with({**known, **more, "roles": list(roles)})

    def _owner(self, location: Location) -> dict[str, Any]:
        user = location.user_id
        if user is None:
            # Mappings of old servers do not say; their rows do.
            somebody = self.driver.caller_with({**_STRANGER, "roles": []})
            facts = self.reader.read(somebody, location, {CALLER})
            user = facts[CALLER]["target"]["user_id"]
        return {"user_id": user, "project_id": location.project_id}


def connect(options: argparse.Namespace) -> Cloud:
    """Read the configuration of the API host and open what it names.

    :raises CommandError: where it is not usable
    """
    process = importlib.import_module("state_policy.drivers.nova.process")
    process.start(config.arguments(options))
    try:
        settings = config.settings(options, cfg.CONF, deploy.build_settings)
        driver = deploy.build_driver(settings)
    except deploy.DeployError as error:
        raise exits.CommandError(str(error), exits.USAGE) from error
    return Cloud(settings, driver, deploy.build_reader(driver))
