# SPDX-License-Identifier: Apache-2.0
"""What a command cannot read it does not call absent, or forbidden."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from state_policy.cmd import now
from state_policy.cmd.cloud import Cloud
from state_policy.cmd.exits import CommandError
from state_policy.conf import Settings
from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.engine.ports.reading import Location, UnreadError
from tests.unit.wsgi.requests import SERVER
from tests.unit.wsgi.rules import rules


class Dim(Driver):
    """Finds no server, or tells no right."""

    seeing = True

    def locate(self, server_id: str) -> Location | None:
        """Fail, if it does not see."""
        if not self.seeing:
            raise UnreadError("secret")
        return super().locate(server_id)

    def may(self, *args: Any) -> None:
        """Tell nothing."""


def server(reader: Dim) -> now.Server:
    """Return the server as ``explain --server`` has it."""
    asked = argparse.Namespace(
        server=SERVER, credential=[], not_owner=False, role=[]
    )
    return now.Server(Cloud(Settings(), reader, reader), asked)


def test_a_server_that_cannot_be_looked_up() -> None:
    reader = Dim([MemoryServer(SERVER)])
    reader.seeing = False
    with pytest.raises(CommandError) as caught:
        server(reader)
    assert str(caught.value) == f"server `{SERVER}` cannot be looked up now"


def test_a_right_that_cannot_be_read() -> None:
    found = server(Dim([MemoryServer(SERVER)]))
    with pytest.raises(CommandError) as caught:
        found.listing(rules('"server:stop": "!"'))
    assert str(caught.value) == (
        f"server `{SERVER}`: the right to see a server could not be read"
    )
