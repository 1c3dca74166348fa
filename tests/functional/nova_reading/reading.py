# SPDX-License-Identifier: Apache-2.0
"""The driver's reading side beside a Nova without the filter."""

from __future__ import annotations

from typing import Any

from nova import context as nova_context

from state_policy.drivers.nova import Driver
from state_policy.drivers.nova import context as driver_context
from state_policy.engine.ports.reading import Caller, Location
from tests.functional import base
from tests.functional.harness import keystone
from tests.functional.harness.keystone import Person


def caller_of(person: Person) -> Caller:
    """Return the caller that the pipeline would make of a person."""
    environ = {
        f"HTTP_{name.upper().replace('-', '_')}": value
        for name, value in person.headers().items()
    }
    found = keystone.make_context(environ, overwrite=False)
    return driver_context.of(found)


class ReadingTestCase(base.NovaTestCase):
    """A driver, and short ways to ask it."""

    FILTERED = False

    def setUp(self) -> None:
        super().setUp()
        self.driver = Driver()

    def locate(self, server_id: str) -> Location:
        """Return where a server is."""
        found = self.driver.locate(server_id)
        assert found is not None, server_id
        return found

    def read(
        self, server_id: str, *keys: str, who: Person = base.OWNER
    ) -> dict[str, Any]:
        """Return the facts named."""
        return dict(
            self.driver.read(
                caller_of(who), self.locate(server_id), frozenset(keys)
            )
        )

    def fact(self, server_id: str, key: str) -> Any:
        """Return one fact that must have been read."""
        return self.read(server_id, key)[key]

    def admin(self) -> Any:
        """Return an admin's context."""
        return nova_context.get_admin_context()
