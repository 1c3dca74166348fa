# SPDX-License-Identifier: Apache-2.0
"""Ports: the owner's survive and are free, Nova's go; Neutron may hang."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from typing import Any

from nova import objects
from nova.network import model as network_model
from nova.network import neutron
from nova.scheduler.client import report

from state_policy.drivers.nova.moving import surroundings
from state_policy.engine.ports.moving import MovingError
from state_policy.quarantine import operator
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, RequestCase


class PortCase(RequestCase):
    """Servers with ports; the network fixture stands in for Neutron."""

    def setUp(self) -> None:
        """Name the owner's port."""
        super().setUp()
        self.owned = self.neutron.port_1["id"]

    def with_port(self) -> str:
        """Return a server with a port that its owner made."""
        return self.boot(networks=[{"port": self.owned}])

    def port(self, port_id: str) -> dict[str, Any] | None:
        """Return a port, None where it is gone."""
        found = self.neutron._ports.get(port_id)
        return dict(found) if found else None

    def empty_cache(self, server_id: str) -> None:
        """Have compute know no port of a server."""
        with surgery.cell_of(server_id) as cell:
            cache = objects.InstanceInfoCache.get_by_instance_uuid(
                cell, server_id
            )
            cache.network_info = network_model.NetworkInfo([])
            cache.save()

    def refuse(self, method: str) -> Callable[[], None]:
        """Have Neutron refuse something; return what makes it work again."""
        path = f"nova.tests.fixtures.neutron.NeutronFixture.{method}"
        original = getattr(type(self.neutron), method)

        def fail(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("503 of the network service")

        self.stub_out(path, fail)
        return lambda: self.stub_out(path, original)

    def assert_free(self, port_id: str) -> None:
        """The port is there and bound to nothing."""
        port = self.port(port_id)
        assert port is not None
        self.assertEqual("", port["device_id"])
        self.assertIsNone(port.get("binding:host_id"))


class TestRelease(PortCase):
    """Whose port it is decides what becomes of it."""

    def test_owned_port_is_free_when_the_answer_is_out(self) -> None:
        server = self.with_port()
        self.assertEqual(server, self.port(self.owned)["device_id"])
        self.assertEqual(204, self.delete(server).status)
        self.assert_free(self.owned)
        (record,) = self.records(server)
        self.assertEqual([self.owned], [p.id for p in record.ports])
        self.assertEqual((), record.made_by_compute)
        self.assertEqual(["settle"], self.swept())
        self.assert_free(self.owned)

    def test_empty_cache_deletes_no_port(self) -> None:
        server = self.with_port()
        self.empty_cache(server)
        self.assertEqual(204, self.delete(server).status)
        self.assert_free(self.owned)
        # and a second time, as sweep does
        self.mover.release_ports(server, (), self.mover.newest_record(server))
        self.assert_free(self.owned)

    def test_port_that_a_build_binds_meanwhile(self) -> None:
        """It came after the look at the ports, and into no cache yet."""
        late = self.neutron.port_2["id"]
        self.neutron._ports[late] = copy.deepcopy(self.neutron.port_2)
        server = self.boot(networks=[{"port": self.owned}, {"port": late}])
        self.empty_cache(server)
        place = "state_policy.drivers.nova.moving.surroundings.bound_ports"
        look = surroundings.bound_ports

        def looked(server_id: str) -> dict[str, str]:
            self.stub_out(place, look)
            return {self.owned: ""}

        self.stub_out(place, looked)
        refused = self.assertRaises(
            MovingError,
            self.mover.release_ports,
            server,
            (),
            None,
        )
        self.assertIn(late, str(refused))
        self.assert_free(self.owned)
        self.assertEqual(server, self.port(late)["device_id"])

    def test_port_made_by_nova_is_deleted(self) -> None:
        server = self.boot(networks=[{"uuid": self.neutron.network_1["id"]}])
        (made,) = self.mover.look(server).ports
        self.assertTrue(made.made_by_compute)
        mend = self.refuse("delete_port")
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(server, self.port(made.id)["device_id"])
        self.assertEqual((made,), self.mover.look(server).ports)
        mend()
        self.assertEqual(["finish ports", "settle"], self.swept())
        self.assertIsNone(self.port(made.id))

    def test_port_that_left_is_left_alone(self) -> None:
        """The cache still names a port that is another server's by now."""
        first = self.with_port()
        other = self.boot()
        self.neutron._ports[self.owned]["device_id"] = other
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(other, self.port(self.owned)["device_id"])

    def test_bound_late(self) -> None:
        """Neutron ends a binding after the ports were released."""
        server = self.with_port()
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        self.neutron._ports[self.owned]["device_id"] = server
        mend = self.refuse("update_port")
        (failed,) = self.sweep().done
        self.assertEqual("finish ports", failed.step)
        self.assertIn(f"still bound: port {self.owned}", str(failed.error))
        mend()
        self.assertEqual(["finish ports"], self.swept())
        self.assert_free(self.owned)


class TestOperators(PortCase):
    """Ports that operators give to a server in quarantine."""

    def setUp(self) -> None:
        """Have Neutron keep whose a port is, as it does."""
        super().setUp()
        create = type(self.neutron).create_port

        def created(neutron: Any, body: Any = None) -> Any:
            port = create(neutron, body)["port"]
            project = dict.fromkeys(
                ("project_id", "tenant_id"), body["port"]["tenant_id"]
            )
            neutron._ports[port["id"]] |= project
            return {"port": port | project}

        self.stub_out(
            "nova.tests.fixtures.neutron.NeutronFixture.create_port", created
        )

    def test_they_stay(self) -> None:
        server = self.with_port()
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        answer = self.ask(
            "POST",
            f"/servers/{server}/os-interface",
            {"interfaceAttachment": {"net_id": self.neutron.network_1["id"]}},
            who=base.OPERATOR,
        )
        self.assertEqual(200, answer.status, answer.body)
        ours = answer.json["interfaceAttachment"]["port_id"]
        project = {ours: KEEPER.project_id}
        self.assertEqual(project, self.mover.bound_ports(server))
        self.assertEqual([], self.swept())
        # one of the owner's is still taken, and that one alone
        self.neutron._ports[self.owned]["device_id"] = server
        self.assertEqual(["finish ports"], self.swept())
        self.assert_free(self.owned)
        self.assertEqual(project, self.mover.bound_ports(server))
        (known,) = self.mover.look(server).ports
        self.assertEqual(ours, known.id)
        operator.purge_one(self.mover, self.policy, server)
        self.assert_gone(server)
        self.assertIsNone(self.port(ours))


class TestKept(PortCase):
    """Ports that stay bound until the server is purged."""

    POLICY = {"on_ports": "keep"}

    def test_purge_deletes_no_port_of_the_owner(self) -> None:
        """Compute forgets whose port it is as soon as the row has moved."""
        server = self.with_port()
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        self.assertEqual(server, self.port(self.owned)["device_id"])
        # Any event of the network makes compute ask for the ports of the
        # row's project, and these are not: so it is on a real cloud. The
        # fixture does not know whose a port is.
        self.empty_cache(server)
        mend = self.refuse("update_port")
        self.assertRaises(
            MovingError,
            operator.purge_one,
            self.mover,
            self.policy,
            server,
        )
        self.assertEqual(server, self.port(self.owned)["device_id"])
        self.assert_settled(server)
        mend()
        operator.purge_one(self.mover, self.policy, server)
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.assert_free(self.owned)


class TestSlow(PortCase):
    """Services that hang or fail do not keep the client waiting."""

    POLICY = {"request_budget": 0.5}

    def test_neutron_hangs(self) -> None:
        server = self.with_port()
        hanging = threading.Event()
        self.addCleanup(hanging.set)
        client = neutron.get_client

        def hang(*args: Any, **kwargs: Any) -> Any:
            hanging.wait(30)
            return client(*args, **kwargs)

        self.stub_out("nova.network.neutron.get_client", hang)
        began = time.monotonic()
        self.assertEqual(204, self.delete(server).status)
        self.assertLess(time.monotonic() - began, 5)
        self.assert_concealed(server)
        self.assertEqual(server, self.port(self.owned)["device_id"])
        hanging.set()
        self.stub_out("nova.network.neutron.get_client", client)
        self.swept()
        self.assert_free(self.owned)
        self.assert_settled(server)

    def test_neutron_fails(self) -> None:
        server = self.with_port()
        client = neutron.get_client

        def fail(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("no route to the network service")

        self.stub_out("nova.network.neutron.get_client", fail)
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        # what can be done is done all the same
        self.assertEqual(KEEPER.project_id, self.charged(server))
        report_ = self.sweep()
        self.assertEqual(
            ["finish ports"], [d.step for d in self.errors(report_)]
        )
        # Nova's own GET fails without Neutron
        self.stub_out("nova.network.neutron.get_client", client)
        self.assert_settled(server)
        self.assertEqual(["finish ports"], self.swept())
        self.assert_free(self.owned)

    def test_placement_is_down(self) -> None:
        server = self.with_port()
        get = report.SchedulerReportClient.get

        def fail(*args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("placement is down")

        self.stub_out(
            "nova.scheduler.client.report.SchedulerReportClient.get", fail
        )
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        self.assert_free(self.owned)
        self.assertTrue(self.sweep().failed)
        self.stub_out(
            "nova.scheduler.client.report.SchedulerReportClient.get", get
        )
        self.assertEqual(["finish placement"], self.swept())
        self.assert_settled(server)
