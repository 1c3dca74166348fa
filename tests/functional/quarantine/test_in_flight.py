# SPDX-License-Identifier: Apache-2.0
"""Operations of the owner's that run when the server is concealed.

Each blocks in the hypervisor, the server is concealed, the operation goes on.
Nothing may be stranded; the table of the documentation is this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from state_policy.quarantine import operator
from tests.functional.harness import surgery
from tests.functional.quarantine.support import RequestCase

IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"


@dataclass(frozen=True)
class Flight:
    """One operation.

    :ivar body: of the action that starts it
    :ivar method: of the hypervisor, in which it blocks
    :ivar end: vm_state in which it ends
    :ivar before: action that has to be done first, and its vm_state
    """

    name: str
    body: dict[str, Any]
    method: str
    end: str = "active"
    before: tuple[str, str] | None = None


FLIGHTS = (
    Flight("create_image", {"createImage": {"name": "i"}}, "snapshot"),
    Flight("stop", {"os-stop": None}, "power_off", "stopped"),
    Flight(
        "start",
        {"os-start": None},
        "power_on",
        before=("os-stop", "stopped"),
    ),
    Flight("reboot_soft", {"reboot": {"type": "SOFT"}}, "reboot"),
    Flight("reboot_hard", {"reboot": {"type": "HARD"}}, "reboot"),
    Flight("pause", {"pause": None}, "pause", "paused"),
    Flight("suspend", {"suspend": None}, "suspend", "suspended"),
    Flight("rebuild", {"rebuild": {"imageRef": IMAGE}}, "spawn"),
    Flight("shelve", {"shelve": None}, "snapshot", "shelved"),
)


class TestInFlight(RequestCase):
    """Each operation, one after the other, on a server of its own."""

    def test_nothing_is_stranded(self) -> None:
        self.flags(shelved_offload_time=-1)
        for flight in FLIGHTS:
            with self.subTest(flight.name):
                self._fly(flight)

    def _fly(self, flight: Flight) -> None:
        server = self.boot()
        if flight.before is not None:
            action, vm_state = flight.before
            self.assertEqual(202, self.act(server, action).status)
            self.wait_for(
                lambda: surgery.row(server)["vm_state"] == vm_state, vm_state
            )
            self.wait_task(server, None)
        hold = self.hold(flight.method)
        answer = self.act(server, flight.body)
        self.assertEqual(202, answer.status, answer.body)
        hold.wait_reached()
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        self.assertEqual([], self.swept())
        hold.release()
        hold.wait_left()
        self.wait_task(server, None)
        self.wait_for(
            lambda: not self.mover.look(server).running, "nothing runs"
        )
        self.assertEqual(flight.end, surgery.row(server)["vm_state"])
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        self.assertEqual((), self.records(server)[-1].stranded)
        self.assertEqual([server], self.guests())
        # and it can be purged
        operator.purge_one(self.mover, self.policy, server)
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.wait_for(lambda: not self.guests(), "no guest")
        self.wait_for(lambda: self.charged(server) is None, "no allocation")

    def test_excluded(self) -> None:
        """What is not concealed is deleted by Nova, at once or later."""
        self.flags(allow_resize_to_same_host=True)
        resized, attaching = self.boot(), self.boot()
        hold = self.hold("migrate_disk_and_power_off")
        flavor = self.owner.get_flavors()[1]["id"]
        answer = self.act(resized, {"resize": {"flavorRef": flavor}})
        self.assertEqual(202, answer.status)
        hold.wait_reached()
        attach = self.hold("attach_volume")
        volume = self.cinder.IMAGE_BACKED_VOL
        self.owner.post_server_volume(
            attaching, {"volumeAttachment": {"volumeId": volume}}
        )
        attach.wait_reached()
        for server in (resized, attaching):
            self.assertEqual(204, self.delete(server).status)
            self.assertEqual([], self.records(server))
            self.assertFalse(surgery.row(server)["hidden"])
        hold.release()
        attach.release()
        for server in (resized, attaching):
            self.wait_for(
                lambda one=server: surgery.row(one)["deleted"], "deleted"
            )
