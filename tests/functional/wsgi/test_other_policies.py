# SPDX-License-Identifier: Apache-2.0
"""Rules hold whichever policy Nova asks about a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from nova.db.api import api as api_db
from nova.db.api import models

from state_policy.drivers.nova import rights
from state_policy.engine.operations import INSTEAD, OPERATIONS
from tests.functional import base
from tests.functional.harness.keystone import Person
from tests.functional.nova_reading import requests
from tests.functional.nova_reading.reading import caller_of
from tests.functional.nova_reading.test_answers import plain
from tests.functional.nova_reading.test_never_more import SwitchedTestCase
from tests.functional.nova_reading.test_rights import _PassedError, rest_cells

#: Whom one policy of each operation lets, and whom the other.
FIRST = Person("first", base.OPERATOR_PROJECT, ("admin", "first"))
SECOND = Person("second", base.OPERATOR_PROJECT, ("admin", "second"))
COLLEAGUE = Person("colleague", base.OWNER_PROJECT)


@dataclass(frozen=True)
class Asking:
    """A request, and whether Nova asks the second policy about it."""

    operation: str
    body: Any
    version: str
    second: bool

    @property
    def gate(self) -> str:
        gate = OPERATIONS[self.operation].gate
        return INSTEAD[self.operation] if self.second else gate


def _cold(argument: Any, version: str, second: bool) -> Asking:
    return Asking("migrate", {"migrate": argument}, version, second)


def _live(host: Any, version: str, second: bool) -> Asking:
    argument = {"host": host, "block_migration": False}
    if version == "2.1":
        argument["disk_over_commit"] = False
    return Asking(
        "live_migrate", {"os-migrateLive": argument}, version, second
    )


def _volume(id: str, version: str, second: bool) -> Asking:
    body = {"volumeAttachment": {"volumeId": id}}
    return Asking("update_volume", body, version, second)


ANOTHER = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
REQUESTS = (
    _cold(None, "2.90", second=False),
    _cold({"host": None}, "2.90", second=False),
    _cold({"host": "h"}, "2.55", second=False),
    _cold({"host": "h"}, "2.56", second=True),
    _cold({"host": "h"}, "latest", second=True),
    _live(None, "2.1", second=False),
    _live(None, "2.90", second=False),
    _live("h", "2.1", second=True),
    _live("h", "2.90", second=True),
    _volume(requests.ID, "2.90", second=False),
    _volume(requests.ID, "2.84", second=True),
    _volume(ANOTHER, "2.90", second=True),
    _volume(ANOTHER, "2.1", second=True),
)


class TestOtherPolicies(SwitchedTestCase):
    """One Nova for all of them."""

    RULES = """
"class:any": "!"
"server:lock": "user_id:%(user_id)s"
"""

    def test_them(self) -> None:
        self.server = self.boot()
        self.user_that_the_mapping_does_not_name()
        self.watch()
        self.second_policies()
        self.older_nova()
        self.consoles_of_the_old_api()

    def user_that_the_mapping_does_not_name(self) -> None:
        """Mappings from before Nova's Train: a rule still knows the user."""
        table = models.InstanceMapping.__table__
        engine = api_db.context_manager.writer.get_engine()
        with engine.begin() as connection:
            connection.execute(
                sa.update(table)
                .where(table.c.instance_uuid == self.server)
                .values(user_id=None)
            )
        assert self.locate(self.server).user_id is None
        refused = self.act(self.server, "lock", who=COLLEAGUE)
        assert refused.status == 403, refused
        assert refused.json["forbidden"]["state_policy"]
        assert self.act(self.server, "lock").status == 202

    def outcome(self, who: Person, asking: Asking) -> tuple[bool, Any]:
        """Return whether Nova let the request pass, and the answer if not."""
        rest_cells()
        self.gate, self.passed, self.found = asking.gate, False, False
        operation = OPERATIONS[asking.operation]
        try:
            answer = self.ask(
                operation.method,
                requests.path(operation, self.server),
                asking.body,
                who=who,
                microversion=asking.version,
            )
        except _PassedError:
            return True, None
        finally:
            self.passed, self.gate = False, ""
        return False, answer

    def pair(self, who: Person, asking: Asking, *, lets: bool) -> None:
        """Look at a request without the filter and with it."""
        self.switch.touch()
        theirs = self.outcome(who, asking)
        self.switch.unlink()
        passed, answer = self.outcome(who, asking)
        case = (who.user_id, asking, theirs[1], answer)
        assert theirs[0] is lets and not passed, case
        assert answer.status == 403, case
        if lets:
            assert answer.json["forbidden"]["state_policy"], case
        else:
            assert plain(answer) == plain(theirs[1]), case

    def second_policies(self) -> None:
        found: dict[str, str] = {}
        for name, other in INSTEAD.items():
            found[OPERATIONS[name].gate] = "role:first"
            found[other] = "role:second"
        self.policy.set_rules(found, overwrite=False)
        for asking in REQUESTS:
            self.pair(FIRST, asking, lets=not asking.second)
            self.pair(SECOND, asking, lets=asking.second)
        # About another volume Nova asks without a word about the server.
        owners = {INSTEAD["update_volume"]: "project_id:%(project_id)s"}
        self.policy.set_rules(owners, overwrite=False)
        self.pair(
            base.OWNER, _volume(ANOTHER, "2.90", second=True), lets=False
        )

    def older_nova(self) -> None:
        """It has no policy of its own for a host that is named."""
        place = self.locate(self.server)
        for name in ("migrate", "live_migrate"):
            other = INSTEAD[name]
            assert not self.driver.may(caller_of(FIRST), place, other)
            known = rights.known
            self.stub_out(
                "state_policy.drivers.nova.rights.known",
                lambda gate, other=other, known=known: (
                    gate != other and known(gate)
                ),
            )
            assert self.driver.may(caller_of(FIRST), place, other)
            assert not self.driver.may(caller_of(SECOND), place, other)
            self.stub_out("state_policy.drivers.nova.rights.known", known)

    def consoles_of_the_old_api(self) -> None:
        """About these Nova asks as if the server were the caller's."""
        self.policy.set_rules(
            {rights.CONSOLES: "role:first and project_id:%(project_id)s"},
            overwrite=False,
        )
        for name in sorted(requests.OLD_CONSOLES):
            operation = OPERATIONS[name]
            body = requests.body(operation)
            asking = Asking(name, body, requests.OLDEST, second=False)
            self.pair(FIRST, asking, lets=True)
            self.pair(SECOND, asking, lets=False)
