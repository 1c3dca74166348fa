# SPDX-License-Identifier: Apache-2.0
"""The harness does what the other tests rely on."""

from __future__ import annotations

from tests.functional import base
from tests.functional.harness import surgery


class TestWithoutFilter(base.NovaTestCase):
    """Nova as it is installed."""

    FILTERED = False

    def test_a_held_build_and_the_callers(self) -> None:
        server, hold = self.boot_held()
        self.assertEqual("building", surgery.row(server)["vm_state"])
        self.assertEqual("spawning", surgery.row(server)["task_state"])
        self.assertEqual([server], self.listed())
        self.assertEqual([], self.listed(base.FOREIGNER))
        self.assertEqual(
            [server], self.listed(base.OPERATOR, "?all_tenants=1")
        )
        self.assertEqual(1, self.used()["instances"])
        address = f"/servers/{server}"
        for who, status in (
            (base.OWNER, 200),
            (base.READER, 200),
            (base.FOREIGNER, 404),
            (base.OPERATOR, 200),
        ):
            self.assertEqual(status, self.ask("GET", address, who=who).status)
        self.assertEqual(403, self.delete(server, who=base.READER).status)
        hold.release()
        self._wait_for_state_change({"id": server}, "ACTIVE")

    def test_time_passes_and_hosts_go_down(self) -> None:
        server = self.boot()
        before = surgery.row(server)["created_at"]
        surgery.make_older(server, minutes=61)
        passed = before - surgery.row(server)["created_at"]
        self.assertEqual(61 * 60, passed.total_seconds())
        self.force_down()
        (service,) = self.operator.get_services(binary="nova-compute")
        self.assertEqual("down", service["state"])
        with self.statements() as seen:
            self.ask("GET", f"/servers/{server}")
        self.assertIn("api", seen.selects())
        self.assertIn("cell1", seen.selects())
