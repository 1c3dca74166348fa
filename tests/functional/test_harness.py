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

    def test_a_service_that_says_it_is_alive_is_not_counted(self) -> None:
        (service,) = self.computes.values()
        before = service.service_ref.report_count
        with self.statements(every_thread=True) as seen:
            service.servicegroup_api._driver._report_state(service)
        self.assertEqual(before + 1, service.service_ref.report_count)
        self.assertEqual([], seen.seen)
        with self.statements(every_thread=True) as seen:
            self.operator.get_services(binary="nova-compute")
        self.assertNotEqual([], seen.seen)


class TestFilterIsLoaded(base.NovaTestCase):
    """Nova's own loader finds the filter in the paste file, twice."""

    RULES = '"server:pause": "!"\n"server:unpause": "@"\n'

    def test_both_pipelines_ask_the_rules(self) -> None:
        server = self.boot()
        for prefix in ("/v2.1", "/v2"):
            answer = self.act(server, "pause", prefix=prefix)
            self.assertEqual(403, answer.status, prefix)
            self.assertIn("forbidden", answer.json)
        self.assertEqual("active", surgery.row(server)["vm_state"])


class TestFilterIsAbsent(base.NovaTestCase):
    """The same rules without the filter change nothing."""

    FILTERED = False
    RULES = TestFilterIsLoaded.RULES

    def test_neither_pipeline_asks_the_rules(self) -> None:
        server = self.boot()
        self.assertEqual(202, self.act(server, "pause").status)
        self._wait_for_state_change({"id": server}, "PAUSED")
        self.assertEqual(202, self.act(server, "unpause", prefix="/v2").status)
