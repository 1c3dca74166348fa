# SPDX-License-Identifier: Apache-2.0
"""Rights where the row, or Nova's policy, cannot be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from oslo_db import exception as db_exception

from state_policy.drivers.nova import rights
from state_policy.engine.ports.reading import Location
from tests.functional import base
from tests.functional.harness.keystone import Person
from tests.functional.nova_reading.reading import ReadingTestCase, caller_of

DELETE = "os_compute_api:servers:delete"
STOP = "os_compute_api:servers:stop"
ADMINS = "os_compute_api:os-admin-actions:reset_state"


class TestUnread(ReadingTestCase):
    """One Nova for all of them."""

    def may(self, who: Person, location: Location, gate: str) -> bool | None:
        return self.driver.may(caller_of(who), location, gate)

    def test_rights(self) -> None:
        self.server = self.boot()
        self.row_that_cannot_be_read()
        self.user_that_only_the_row_knows()
        self.policy_that_fails()
        self.server_that_is_gone()

    def break_rows(self, *, broken: bool) -> None:
        real = self.load

        def load(*args: Any) -> Any:
            if broken:
                raise db_exception.DBError("of no kind that has a meaning")
            return real(*args)

        self.stub_out("state_policy.drivers.nova.server.load", load)

    def setUp(self) -> None:
        super().setUp()
        from state_policy.drivers.nova import server

        self.load = server.load

    def row_that_cannot_be_read(self) -> None:
        """The mapping has the project and the user, too."""
        self.break_rows(broken=True)
        location = self.locate(self.server)
        for who, gate, expected in (
            (base.OWNER, DELETE, True),
            (base.OWNER, ADMINS, False),
            (base.OWNER, rights.UNLOCK, True),
            (base.READER, DELETE, False),
            (base.FOREIGNER, DELETE, False),
            (base.OPERATOR, ADMINS, True),
        ):
            assert self.may(who, location, gate) is expected, (who, gate)
        # Its delete was accepted once: perhaps it is not there any more.
        location.handle.queued_for_delete = True
        for who, gate, expected in (
            (base.OWNER, DELETE, None),
            (base.OPERATOR, ADMINS, None),
            (base.OWNER, ADMINS, False),
            (base.FOREIGNER, DELETE, False),
        ):
            assert self.may(who, location, gate) is expected, (who, gate)
        self.break_rows(broken=False)
        assert self.may(base.OWNER, location, DELETE) is True

    def user_that_only_the_row_knows(self) -> None:
        """Mappings from before Nova's Train have none."""
        self.policy.set_rules({STOP: "user_id:%(user_id)s"}, overwrite=False)
        location = replace(self.locate(self.server), user_id=None)
        self.break_rows(broken=True)
        for who, gate, expected in (
            (base.OWNER, STOP, None),
            (base.OWNER, DELETE, True),
            (base.READER, DELETE, False),
            (base.FOREIGNER, STOP, False),
        ):
            assert self.may(who, location, gate) is expected, (who, gate)
        self.break_rows(broken=False)
        assert self.may(base.OWNER, location, STOP) is True
        assert self.may(base.READER, location, STOP) is False

    def policy_that_fails(self) -> None:
        """As a check that asks another service does when that is away."""

        def fail(*args: Any, **more: Any) -> Any:
            raise OSError("secret")

        self.stub_out("nova.policy.authorize", fail)
        location = self.locate(self.server)
        assert self.may(base.OWNER, location, DELETE) is None
        # Whose it is is known all the same.
        assert self.may(base.FOREIGNER, location, DELETE) is False

    def server_that_is_gone(self) -> None:
        """That was read: there is no row."""
        self.stub_out("state_policy.drivers.nova.server.load", lambda *_: None)
        location = self.locate(self.server)
        assert self.may(base.OPERATOR, location, ADMINS) is False
