# SPDX-License-Identifier: Apache-2.0
"""The story: what a user and an operator live through, step by step."""

from __future__ import annotations

import uuid
from typing import Any

from demo import operators
from demo.cloud import Cloud
from demo.narrator import Narrator
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.holds import Hold

#: What a refusal says besides what Nova says.
SENTENCE = (
    "it is in task_state image_snapshot",
    "In this state for ",
    "by action 'createImage'",
    "It may pass once ",
    "Retry in 30 seconds",
)
NOTHING = {"instances": 0, "cores": 0, "ram": 0}


class Story:
    """Tells the chapters on one cloud, in order.

    :param cloud: a running one
    :param say: what tells and checks
    """

    def __init__(self, cloud: Cloud, say: Narrator) -> None:
        self._cloud = cloud
        self._say = say

    def run(self) -> None:
        """Tell everything.

        :raises DifferenceError: where something came out otherwise
        """
        self._rules()
        self._stuck_build()
        self._finished_after_all()
        self._too_early()
        self._released()
        self._refused()

    # -- chapters ------------------------------------------------------------

    def _rules(self) -> None:
        say = self._say
        say.chapter("The operator's rules")
        rules = self._cloud.policy_file.read_text()
        say.quote(
            "\n".join(
                line
                for line in rules.splitlines()
                if line and not line.startswith("#")
            )
        )
        say.tell(
            "Nobody has to wait an hour here: when time passes in this "
            "story, the dates of the server's rows in Nova's database are "
            "moved into the past. Nothing else is made up; every request "
            "goes through Nova's API."
        )

    def _stuck_build(self) -> None:
        say, cloud = self._say, self._cloud
        say.chapter("A build hangs, and its owner gives up")
        self._first, self._hold = self._stuck("first")
        say.check(
            "The owner created a server. The hypervisor does not answer: it "
            "stays in BUILD and counts against the quota.",
            ("BUILD", 1),
            (self._status(self._first), cloud.used()["instances"]),
        )
        self._pass_time(self._first, minutes=61)
        self._delete(self._first)
        self._owner_is_free(self._first)
        self._operator_looks(self._first, completed=False)

    def _finished_after_all(self) -> None:
        say, cloud = self._say, self._cloud
        say.chapter("The build ends after all")
        self._unblock(self._first, self._hold)
        say.check(
            "The hypervisor answered at last: Nova finished the build as if "
            "nothing had happened, and guest and allocation agree.",
            ("active", True, True),
            (
                surgery.row(self._first)["vm_state"],
                self._guest(self._first),
                self._allocated(self._first),
            ),
        )
        say.check("Its owner still sees nothing of it.", [], cloud.listed())
        self._pass_time(self._first, minutes=2)
        self._sweep("settle")
        say.check(
            "The server now is one of the quarantine project's, found "
            "completed.",
            (base.QUARANTINE_PROJECT, [self._first]),
            (
                surgery.row(self._first)["project_id"],
                cloud.listed(base.INSPECTOR),
            ),
        )
        self._operator_looks(self._first, completed=True)
        self._sweep("purge")
        self._gone(self._first)

    def _too_early(self) -> None:
        say, cloud = self._say, self._cloud
        say.chapter("A DELETE that came too early")
        server, hold = self._stuck("second")
        self._delete(server)
        say.check(
            "The server was too young for the rule, so Nova's own delete "
            "was tried; it waits behind the build. The server is still "
            "listed and still counts.",
            ([server], 1),
            (cloud.listed(), cloud.used()["instances"]),
        )
        self._pass_time(server, minutes=61)
        self._sweep("conceal")
        self._owner_is_free(server)
        self._unblock(server, hold)
        cloud.wait_for(
            lambda: surgery.row(server)["deleted"], "the late delete"
        )
        say.tell(
            "Then the hypervisor answers, and the delete that Nova had "
            "queued is carried out behind the curtain."
        )
        self._pass_time(server, minutes=2)
        self._sweep("give back")
        self._gone(server)

    def _released(self) -> None:
        say, cloud = self._say, self._cloud
        say.chapter("The owner wants the server back")
        server, hold = self._stuck("third")
        self._pass_time(server, minutes=61)
        self._delete(server)
        self._unblock(server, hold)
        self._pass_time(server, minutes=2)
        self._sweep("settle")
        say.tell("The owner calls: that server was needed.")
        operators.release(server)
        shown = cloud.ask("GET", f"/servers/{server}")
        say.check(
            "The operator ran `state-policy quarantine release`. The owner "
            "sees the server again, ACTIVE, and it counts again.",
            (200, "ACTIVE", [server], 1),
            (
                shown.status,
                self._status(server),
                cloud.listed(),
                cloud.used()["instances"],
            ),
        )
        say.check("The quarantine is empty.", [], cloud.listed(base.INSPECTOR))
        self._kept = server

    def _refused(self) -> None:
        say, cloud = self._say, self._cloud
        say.chapter("A refusal that explains itself")
        hold = cloud.hold("snapshot")
        image = {"createImage": {"name": "keep"}}
        cloud.act(self._kept, image)
        hold.wait_reached()
        image_ref = cloud.glance.auto_disk_config_disabled_image["id"]
        rebuild = {"rebuild": {"imageRef": image_ref}}
        answer = cloud.act(self._kept, rebuild)
        say.check(
            "A snapshot is being taken; the owner asks for a rebuild and is "
            "answered 409 with Retry-After.",
            (409, True),
            (answer.status, (answer.header("Retry-After") or "").isdigit()),
        )
        say.quote(answer.message)
        say.check(
            "The sentence names what blocks, since when and by which action, "
            "and what would let it pass.",
            [],
            [part for part in SENTENCE if part not in answer.message],
        )
        self._unblock(self._kept, hold)
        again = cloud.act(self._kept, rebuild)
        say.check(
            "When the snapshot is done, the same request is accepted.",
            202,
            again.status,
        )
        self._wait_idle(self._kept)

    # -- what chapters are made of -------------------------------------------

    def _stuck(self, name: str) -> tuple[str, Hold]:
        """Have a server created whose build does not come to its end."""
        self._say.tell(f"The owner creates a server, the {name} one.")
        return self._cloud.boot_held(name=name)

    def _delete(self, server: str) -> None:
        answer = self._cloud.delete(server)
        self._say.check(
            "The owner deletes it and is answered 204.", 204, answer.status
        )

    def _owner_is_free(self, server: str) -> None:
        say, cloud = self._say, self._cloud
        say.check("The owner's list is empty.", [], cloud.listed())
        never = str(uuid.uuid4())
        absent = cloud.ask("GET", f"/servers/{never}")
        shown = cloud.ask("GET", f"/servers/{server}")
        say.check(
            "GET by id is Nova's own 404, that of a server that never was.",
            (404, absent.message),
            (shown.status, shown.message.replace(server, never)),
        )
        say.check("The limits are back to 0.", NOTHING, cloud.used())

    def _operator_looks(self, server: str, completed: bool) -> None:
        say = self._say
        listed = operators.listed()
        say.check(
            "The operator finds it with `state-policy quarantine list`.",
            [server],
            [row["ID"] for row in listed],
        )
        shown = operators.shown(server)
        say.check(
            "`quarantine show` names its owner's project and says whether "
            f"the build came to an end: {'yes' if completed else 'no'}.",
            (base.OWNER_PROJECT, completed),
            (shown["owner_project"], shown["completed"]),
        )
        say.quote(f"phase: {shown['phase']}   next: {shown['next']}")

    def _sweep(self, step: str) -> None:
        done = operators.swept()
        self._say.check(
            f"`state-policy quarantine sweep` ran: {step}.",
            True,
            step in done,
        )

    def _gone(self, server: str) -> None:
        cloud = self._cloud
        cloud.wait_for(
            lambda: (
                surgery.row(server)["deleted"]
                and not self._allocated(server)
                and not self._guest(server)
            ),
            "nothing left of it",
        )
        self._say.check(
            "Nothing is left of it: no row in sight, no guest, no "
            "allocation, no entry in quarantine.",
            ([], [], NOTHING),
            (
                operators.listed(),
                cloud.listed(base.OPERATOR, "?all_tenants=1"),
                cloud.used(base.INSPECTOR),
            ),
        )

    def _unblock(self, server: str, hold: Hold) -> None:
        hold.release()
        hold.wait_left()
        if not surgery.row(server)["deleted"]:
            self._wait_idle(server)

    def _wait_idle(self, server: str) -> None:
        def idle() -> bool:
            row: dict[str, Any] = surgery.row(server)
            return bool(row["deleted"]) or row["task_state"] is None

        self._cloud.wait_for(idle, "an idle server")

    def _pass_time(self, server: str, minutes: int) -> None:
        self._say.tell(f"{minutes} minutes pass.")
        self._cloud.age(server, minutes)

    def _status(self, server: str) -> Any:
        shown = self._cloud.ask("GET", f"/servers/{server}")
        return shown.json["server"]["status"]

    def _guest(self, server: str) -> bool:
        driver = self._cloud.compute.driver
        return server in driver.list_instance_uuids()

    def _allocated(self, server: str) -> bool:
        return bool(self._cloud._get_allocations_by_server_uuid(server))
