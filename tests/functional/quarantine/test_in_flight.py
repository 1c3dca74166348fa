# SPDX-License-Identifier: Apache-2.0
"""Operations of the owner's that run when the server is concealed.

Each blocks in the hypervisor, the server is concealed, the operation goes on.
Nothing may be stranded; the table of the documentation is this table.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nova.tests import fixtures as nova_fixtures

from state_policy.quarantine import operator
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import RequestCase

IMAGE = "155d900f-4e14-4e4c-a73d-069cbf4541e6"
VOLUME = nova_fixtures.CinderFixture.IMAGE_BACKED_VOL


@dataclass(frozen=True)
class Flight:
    """One operation.

    :ivar body: of the request that starts it
    :ivar method: of the hypervisor, in which it blocks
    :ivar end: vm_state in which it ends
    :ivar before: action that has to be done first, and its vm_state
    :ivar path: where the request goes, and the status that it is answered
        with
    :ivar options: of Nova's, that differ from its defaults
    :ivar runs: whether it ends with a guest, and an allocation for it
    :ivar volumes: that the server has in the end
    """

    name: str
    body: dict[str, Any]
    method: str
    end: str = "active"
    before: tuple[str, str] | None = None
    path: tuple[str, int] = ("action", 202)
    options: tuple[tuple[str, Any], ...] = ()
    runs: bool = True
    volumes: tuple[str, ...] = ()


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
    Flight(
        "shelve",
        {"shelve": None},
        "snapshot",
        "shelved_offloaded",
        runs=False,
    ),
    Flight(
        "shelve_that_keeps_its_host",
        {"shelve": None},
        "snapshot",
        "shelved",
        options=(("shelved_offload_time", -1),),
    ),
)

#: Options of Nova's that flights change, with its defaults.
DEFAULTS: dict[str, Any] = {"shelved_offload_time": 0}

#: With ``on_volumes = keep``; else it is excluded.
KEPT = (
    Flight(
        "attach_volume",
        {"volumeAttachment": {"volumeId": VOLUME}},
        "attach_volume",
        path=("os-volume_attachments", 200),
        volumes=(VOLUME,),
    ),
)


class _Flying(RequestCase):
    """Each operation, one after the other, on a server of its own."""

    def fly_all(self, flights: Sequence[Flight]) -> None:
        """Have each begin, its server concealed, and each end."""
        for flight in flights:
            with self.subTest(flight.name):
                self._fly(flight)

    def note_of_delete(self, server: str) -> Any:
        """Delete a server; return what the decision's line notes."""
        with self.assertLogs("state_policy.decisions", logging.INFO) as log:
            self.assertEqual(204, self.delete(server).status)
        (line,) = [json.loads(record.getMessage()) for record in log.records]
        self.assertEqual(
            ("quarantine", "delete", server),
            (line["verdict"], line["operation"], line["server"]),
        )
        return line["note"]

    def _fly(self, flight: Flight) -> None:
        self.flags(**{**DEFAULTS, **dict(flight.options)})
        server = self.boot()
        if flight.before is not None:
            action, vm_state = flight.before
            self.assertEqual(202, self.act(server, action).status)
            self.wait_for(
                lambda: surgery.row(server)["vm_state"] == vm_state, vm_state
            )
            self.wait_task(server, None)
        hold = self.hold(flight.method)
        path, status = flight.path
        answer = self.ask("POST", f"/servers/{server}/{path}", flight.body)
        self.assertEqual(status, answer.status, answer.body)
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
        self.assert_settled(server, holds=flight.runs)
        self.assertEqual((), self.records(server)[-1].stranded)
        self.assertEqual([server] if flight.runs else [], self.guests())
        seen = self.mover.look(server)
        assert seen is not None
        self.assertEqual(flight.volumes, seen.volumes)
        # and it can be purged
        operator.purge_one(self.mover, self.policy, server)
        self.assert_gone(server)


class TestInFlight(_Flying):
    """What is concealed by default, and what is not."""

    def test_nothing_is_stranded(self) -> None:
        self.fly_all(FLIGHTS)

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
        self.owner.post_server_volume(
            attaching, {"volumeAttachment": {"volumeId": VOLUME}}
        )
        attach.wait_reached()
        for server, reason in (
            (resized, "it is moving to another host"),
            (attaching, "it has volumes and its host is alive"),
        ):
            self.assertEqual(reason, self.note_of_delete(server))
            self.assertEqual([], self.records(server))
            self.assertFalse(surgery.row(server)["hidden"])
        hold.release()
        attach.release()
        for server in (resized, attaching):
            self.wait_for(
                lambda one=server: surgery.row(one)["deleted"], "deleted"
            )


class TestInFlightMoving(_Flying):
    """What is on its way to another host."""

    HOSTS = (("compute1", "cell1"), ("compute2", "cell1"))

    def test_excluded(self) -> None:
        live = {"host": None, "block_migration": "auto"}
        for body, method in (
            ({"migrate": None}, "migrate_disk_and_power_off"),
            ({"os-migrateLive": live}, "live_migration"),
        ):
            server = self.boot()
            hold = self.hold(method)
            answer = self.act(server, body, who=base.OPERATOR)
            self.assertEqual(202, answer.status, answer.body)
            hold.wait_reached()
            self.assertEqual(
                "it is moving to another host", self.note_of_delete(server)
            )
            self.assertEqual([], self.records(server))
            self.assertFalse(surgery.row(server)["hidden"])
            hold.release()
            # what a migration leaves behind on its hosts is Nova's
            self.wait_for(
                lambda one=server: surgery.row(one)["deleted"], "deleted"
            )


class TestInFlightKept(_Flying):
    """What is concealed where servers keep their volumes."""

    POLICY = {"on_volumes": "keep"}

    def test_nothing_is_stranded(self) -> None:
        self.fly_all(KEPT)
        self.assertFalse(self.cinder.volume_to_attachment[VOLUME])
