# SPDX-License-Identifier: Apache-2.0
"""Every fact against real servers: in a cell, in cell0, as build request."""

from __future__ import annotations

from state_policy.drivers.nova.facts.reader import SERVER_KEYS
from state_policy.engine.facts import CALLER, Age
from tests.functional import base
from tests.functional.nova_reading.reading import ReadingTestCase


class TestCommonFacts(ReadingTestCase):
    def test_active_server(self) -> None:
        server = self.boot()
        with self.statements(every_thread=True) as statements:
            facts = self.read(server, *SERVER_KEYS)
        print(facts)
        print(statements.selects(), statements.writes())
        print("\n".join(map(str, statements.seen)))
        assert set(facts) == SERVER_KEYS | {CALLER}
        assert facts["server.vm_state"] == "active"
        assert isinstance(facts["server.age"], Age)
        assert facts[CALLER]["target"] == {
            "project_id": base.OWNER_PROJECT,
            "user_id": "owner",
        }
