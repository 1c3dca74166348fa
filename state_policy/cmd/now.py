# SPDX-License-Identifier: Apache-2.0
"""``state-policy explain --server``: what can be done to a server now.

The same as ``GET /servers/{id}/allowed-actions`` answers, from the same code,
for whichever caller is named.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from state_policy import deploy
from state_policy.cmd import exits
from state_policy.cmd.casefile import values
from state_policy.cmd.cloud import ROLES, Cloud
from state_policy.engine.facts import Facts
from state_policy.engine.ports.reading import Caller, Location, UnreadError
from state_policy.engine.ruleset import RuleSet

COLUMNS = ("operation", "allowed", "code", "retry_after", "message")


class Server:
    """A server, and the caller to judge.

    :raises CommandError: where there is no such server, or the arguments
        name no caller
    """

    def __init__(self, cloud: Cloud, parsed_args: argparse.Namespace) -> None:
        self._cloud = cloud
        self._location: Location = cloud.locate(parsed_args.server)
        self._caller: Caller = _caller(cloud, self._location, parsed_args)

    @property
    def id(self) -> str:
        """Return the server's id as Nova writes it."""
        return self._location.server_id

    def listing(self, rules: RuleSet) -> list[dict[str, Any]]:
        """Return each operation and whether it is allowed, or why not.

        :raises CommandError: where the caller may not see the server, or
            that cannot be told
        """
        allowed = deploy.build_allowed(
            self._cloud.reader,
            self._cloud.driver.answers,
            lambda: rules,
            self._cloud.settings,
        )
        try:
            found = allowed.listing(self._caller, self._location)
        except UnreadError as error:
            raise exits.CommandError(f"server `{self.id}`: {error}") from error
        if found is None:
            raise exits.CommandError(
                f"this caller may not see server `{self.id}`: Nova answers "
                "as if there were none"
            )
        return found

    def facts(self, rules: RuleSet, operation: str) -> Facts:
        """Return the facts that the rules of an operation look at."""
        needs = rules.operations[operation].needs
        return self._cloud.reader.read(self._caller, self._location, needs)


def _caller(
    cloud: Cloud, location: Location, parsed_args: argparse.Namespace
) -> Caller:
    try:
        more = values.pairs(parsed_args.credential)
        values.caller(more)
    except ValueError as error:
        raise exits.CommandError(str(error), exits.USAGE) from error
    return cloud.person(
        location,
        owner=not parsed_args.not_owner,
        roles=tuple(parsed_args.role or ROLES),
        more=more,
    )


def lines(listing: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a listing as a person reads it."""
    for item in listing:
        yield line(item)


def line(item: Mapping[str, Any]) -> str:
    """Return one operation of a listing as a person reads it."""
    name = item["operation"]
    if not item["allowed"]:
        return f"{name}: {item['code']}: {item['message']}"
    if item.get("undecided"):
        return f"{name}: up to Nova, since facts could not be read"
    return f"{name}: allowed"
