# SPDX-License-Identifier: Apache-2.0
"""A build that waits for the network, as libvirt's does, while concealed."""

from __future__ import annotations

import threading
from typing import Any

from nova.virt import fake

from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, OWNER, RequestCase


class TestWaitingBuild(RequestCase):
    """The event reaches compute although the server is in no list."""

    def setUp(self) -> None:
        """Make the hypervisor wait for its network before it ends a build."""
        super().setUp()
        self.port = self.neutron.port_1["id"]
        self.waiting = threading.Event()
        spawn = fake.FakeDriver.spawn
        waiting, port = self.waiting, self.port

        def wait_and_spawn(
            driver: Any, context: Any, instance: Any, *args: Any, **kw: Any
        ) -> Any:
            events = [("network-vif-plugged", port)]
            with driver.virtapi.wait_for_instance_event(
                instance, events, timeout=20
            ):
                waiting.set()
            return spawn(driver, context, instance, *args, **kw)

        self.stub_out("nova.virt.fake.FakeDriver.spawn", wait_and_spawn)

    def test_it_ends_active(self) -> None:
        server = self.boot(expected=None, networks=[{"port": self.port}])
        self.assertTrue(self.waiting.wait(20))
        self.wait_for(lambda: self.mover.look(server).ports, "its ports")
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        event = {
            "name": "network-vif-plugged",
            "server_uuid": server,
            "tag": self.port,
            "status": "completed",
        }
        answer = self.ask(
            "POST",
            "/os-server-external-events",
            {"events": [event]},
            who=base.NEUTRON,
        )
        self.assertEqual(200, answer.status)
        self.wait_for(
            lambda: surgery.row(server)["vm_state"] == "active", "active"
        )
        self.assertEqual([server], self.guests())
        self.assertEqual(KEEPER.project_id, self.charged(server))
        self.wait_for(
            lambda: not self.mover.look(server).running, "nothing runs"
        )
        self.assertIn("settle", self.swept())
        self.assert_settled(server)
        self.assertEqual({}, self.mover.bound_ports(server))


class TestTold(RequestCase):
    """Who is told of a move: billing, by a notification."""

    def test_notification(self) -> None:
        told: list[tuple[str, dict[str, Any]]] = []
        self.stub_out(
            "oslo_messaging.Notifier.info",
            lambda notifier, context, event, payload: told.append(
                (event, payload)
            ),
        )
        server = self.boot()
        told.clear()
        self.assertEqual(204, self.delete(server).status)
        ours = [
            payload
            for event, payload in told
            if event == "state_policy.quarantine.conceal"
        ]
        self.assertEqual(1, len(ours))
        self.assertEqual(server, ours[0]["server_id"])
        self.assertEqual(OWNER.project_id, ours[0]["project_id"])
        self.assertEqual(OWNER.user_id, ours[0]["user_id"])
        self.assertEqual(["settle"], self.swept())
        self.assertEqual(
            "state_policy.quarantine.settle",
            [event for event, _ in told if "quarantine" in event][-1],
        )
