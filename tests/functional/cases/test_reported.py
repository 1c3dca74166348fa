# SPDX-License-Identifier: Apache-2.0
"""Reported cases, each as its server was, with one deployer's rules.

Every test names the public report it is made from. What the person sees is
compared: the status, the sentence, what is left of the server.
"""

from __future__ import annotations

from typing import Any

from nova import context, objects

from tests.functional import base
from tests.functional.harness import surgery

RULES = """
# Out of the owner's way: builds of an hour, deletes of a quarter of one.
"server:delete:quarantine": >-
  (rule:building and server.state_age:>=60m) or
  (rule:deleting and server.state_age:>=15m)
# Say so at once instead of accepting what cannot be done.
"class:power": "not server.host_up:false and not server.locked:true"
"class:network": "not server.vm_state:error"
"server:reboot_soft": "rule:class:power and not server.vm_state:error"
"""

HOST = "rack7-node12"
GONE = {"instances": 0, "cores": 0, "ram": 0}


class _Reported(base.NovaTestCase):
    RULES = RULES
    QUARANTINE = base.QUARANTINED
    HOSTS = ((HOST, "cell1"),)

    def _assert_gone(self, server: str) -> None:
        """The owner sees nothing of it, and has his quota back."""
        self.assertEqual(404, self.ask("GET", f"/servers/{server}").status)
        self.assertEqual([], self.listed())
        self.assertEqual(GONE, self.used())

    def _assert_not_moved(self, server: str) -> None:
        """Nothing was taken into quarantine."""
        self.assertEqual([], self.listed(base.INSPECTOR))
        owner = self._mapping(server).project_id
        self.assertEqual(base.OWNER_PROJECT, owner)

    def _mapping(self, server: str) -> Any:
        return objects.InstanceMapping.get_by_instance_uuid(
            context.get_admin_context(), server
        )

    def _assert_explained(
        self, answer: base.Answer, status: int, *parts: str
    ) -> None:
        """The refusal is Nova's in form and says these things."""
        self.assertEqual(status, answer.status, answer.body)
        (key,) = answer.json
        expected = {403: "forbidden", 409: "conflictingRequest"}
        self.assertEqual(expected[status], key)
        for part in parts:
            self.assertIn(part, answer.message)
        self.assertNotIn(HOST.encode(), answer.body)

    def _broken(self, **more: Any) -> str:
        """Return a server that an operator set to ERROR."""
        server = self.boot(**more)
        reset = {"os-resetState": {"state": "error"}}
        self.act(server, reset, who=base.OPERATOR)
        return server


class TestBuilds(_Reported):
    """Builds that do not end."""

    def test_young_build_without_a_host_is_deleted(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/907808, five minutes old."""
        self.stub_out(
            "nova.compute.rpcapi.ComputeAPI.build_and_run_instance",
            lambda *_, **__: None,
        )
        server = self.boot(expected=None)
        self.wait_for(lambda: self._in_cell(server), "a row in a cell")
        surgery.make_older(server, minutes=5)
        row = surgery.row(server)
        self.assertEqual(
            ("building", "scheduling", None),
            (row["vm_state"], row["task_state"], row["host"]),
        )
        self.assertEqual(204, self.delete(server).status)
        self._assert_gone(server)
        self._assert_not_moved(server)

    def test_build_of_an_hour_goes_to_quarantine(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/907808, 61 minutes old."""
        server, hold = self.boot_held()
        surgery.make_older(server, minutes=61)
        answer = self.delete(server)
        self.assertEqual((204, b""), (answer.status, answer.body))
        self._assert_gone(server)
        self.assertTrue(surgery.row(server)["hidden"])
        self.assertIn(
            "quarantine", [row["action"] for row in surgery.actions(server)]
        )
        hold.release()
        self.wait_task(server, None)
        self.assertEqual("active", surgery.row(server)["vm_state"])

    def test_build_request_is_left_to_nova(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/1859496."""
        self.stub_out(
            "nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances",
            lambda *_, **__: None,
        )
        server = self.boot(expected=None)
        self.assertEqual(204, self.delete(server).status)
        self._assert_gone(server)
        self.assertEqual({}, self._get_allocations_by_server_uuid(server))
        # Nova keeps the mapping until archive and purge take it.
        self.assertTrue(self._mapping(server).queued_for_delete)

    def _in_cell(self, server: str) -> bool:
        return self._mapping(server).cell_mapping is not None


class TestDeletes(_Reported):
    """Deletes under way."""

    def test_repeated_delete_of_a_fresh_one_is_nothing(self) -> None:
        """https://github.com/rackerlabs/otter/issues/1523, a minute old."""
        server = self.boot()
        hold = self.hold("destroy")
        self.assertEqual(204, self.delete(server).status)
        hold.wait_reached()
        surgery.make_older(server, minutes=1)
        before = surgery.actions(server)
        answer = self.delete(server)
        self.assertEqual((204, b""), (answer.status, answer.body))
        self.assertEqual(before, surgery.actions(server))
        self._assert_not_moved(server)
        hold.release()
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self._assert_gone(server)


class TestRefusals(_Reported):
    """Requests that are refused with an explanation."""

    def test_detach_of_an_interface_in_error(self) -> None:
        """https://github.com/kubernetes-sigs/
        cluster-api-provider-openstack/issues/959: DELETE is the way out."""
        server = self._broken(networks=[{"port": self.neutron.port_1["id"]}])
        port = self.neutron.port_1["id"]
        answer = self.ask("DELETE", f"/servers/{server}/os-interface/{port}")
        self._assert_explained(answer, 409, "vm_state error", "DELETE")
        self.assertIsNone(answer.header("Retry-After"))

    def test_soft_reboot_in_error(self) -> None:
        """http://tzpst.hatenablog.com/entry/20130112/p1: hard reboot or
        rebuild are the way out."""
        server = self._broken()
        answer = self.act(server, {"reboot": {"type": "SOFT"}})
        self._assert_explained(
            answer, 409, "vm_state error", "hard reboot", "rebuild"
        )
        hard = self.act(server, {"reboot": {"type": "HARD"}})
        self.assertEqual(202, hard.status, hard.body)

    def test_pause_of_a_locked_server(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/1256873: it is the lock, and
        its reason, that the person must be told."""
        server = self.boot()
        lock = {"lock": {"locked_reason": "backup until noon"}}
        self.assertEqual(202, self.act(server, lock).status)
        answer = self.act(server, "pause")
        self._assert_explained(answer, 409, "locked (backup until noon)")
        self.assertIsNone(answer.header("Retry-After"))

    def test_stop_on_a_host_that_is_down(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/1978983: DELETE is the way
        out, and the host's name is nobody's business."""
        server = self.boot()
        self.force_down(HOST)
        answer = self.act(server, "os-stop")
        self._assert_explained(
            answer,
            409,
            "its compute service does not answer",
            "Possible now: DELETE.",
        )
        self.assertIsNone(surgery.row(server)["task_state"])
        self.assertEqual(204, self.delete(server).status)
        self._assert_gone(server)
