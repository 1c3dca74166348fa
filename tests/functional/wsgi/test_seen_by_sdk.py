# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a refusal who uses openstacksdk, in reported cases.

The answers are real; the SDK makes its exception of each.
"""

from __future__ import annotations

import requests
from openstack import exceptions
from requests.structures import CaseInsensitiveDict

from tests.functional import base
from tests.functional.harness import surgery

HOST = "rack7-node12"


def seen(answer: base.Answer) -> str:
    """Return the text of the exception that the SDK raises for an answer."""
    response = requests.Response()
    response.status_code = answer.status
    response.headers = CaseInsensitiveDict(answer.headers)
    response._content = answer.body
    response.request = requests.Request("POST", "http://nova").prepare()
    response.url = "http://nova"
    try:
        exceptions.raise_from_response(response)
    except exceptions.HttpException as error:
        return str(error)
    raise AssertionError(f"no refusal: {answer}")


class TestSeen(base.NovaTestCase):
    """Refusals by rules, and refusals of Nova's with our explanation."""

    HOSTS = ((HOST, "cell1"),)
    RULES = """
"class:power": "not server.host_up:false and not server.locked:true"
"class:network": "not server.vm_state:error"
"class:destroy": "not server.locked:true"
"server:stop": "rule:class:power and not server.migration:evacuation"
"server:reboot_soft": "rule:class:power and not server.vm_state:error"
"server:create_image": "not rule:busy"
"""

    def _assert_seen(self, answer: base.Answer, *parts: str) -> None:
        text = seen(answer)
        for part in parts:
            self.assertIn(part, text)
        self.assertNotIn(HOST, text)
        self.assertLess(len(answer.message), 300)

    def test_error(self) -> None:
        """Detach of an interface and soft reboot of a server in error."""
        server = self.boot()
        reset = {"os-resetState": {"state": "error"}}
        self.act(server, reset, who=base.OPERATOR)
        self._assert_seen(
            self.ask("DELETE", f"/servers/{server}/os-interface/{server}"),
            f"Cannot 'detach_interface' instance {server} while it is in "
            "vm_state error. In this state for ",
            "Possible now: hard reboot, rebuild, DELETE",
        )
        self._assert_seen(
            self.act(server, {"reboot": {"type": "SOFT"}}),
            f"Cannot 'reboot' instance {server} while it is in vm_state "
            "error.",
            "Possible now: hard reboot, rebuild, DELETE",
        )
        # Never launched: DELETE alone is left.
        surgery.set_row(server, launched_at=None)
        self._assert_seen(
            self.ask("DELETE", f"/servers/{server}/os-interface/{server}"),
            "DELETE",
        )

    def test_locked(self) -> None:
        """A pause by the owner and a delete by an administrator."""
        server = self.boot()
        self.act(server, {"lock": {"locked_reason": "audit until Friday"}})
        pause = self.act(server, "pause")
        self._assert_seen(
            pause,
            f"Cannot 'pause' instance {server} while it is locked (audit "
            "until Friday). In this state for ",
            "It may pass once it is unlocked. Only unlock works now.",
        )
        delete = self.delete(server, who=base.OPERATOR)
        self._assert_seen(
            delete,
            f"Cannot 'delete' instance {server} while it is locked (audit "
            "until Friday).",
        )
        self.assertIsNone(delete.header("Retry-After"))

    def test_host_down(self) -> None:
        """A stop on a host that is down, and during an evacuation."""
        server = self.boot()
        self.force_down(HOST)
        self._assert_seen(
            self.act(server, "os-stop"),
            f"Cannot 'stop' instance {server} while its compute service does "
            "not answer. In this state for ",
            "Only DELETE works now.",
        )

    def test_snapshot(self) -> None:
        """A second image while the first is made."""
        server = self.boot()
        hold = self.hold("snapshot")
        self.act(server, {"createImage": {"name": "one"}})
        hold.wait_reached()
        answer = self.act(server, {"createImage": {"name": "two"}})
        self._assert_seen(
            answer,
            f"Cannot 'createImage' instance {server} while it is in "
            "task_state image_",
            "by action 'createImage'",
            "It may pass once no task is running.",
            "Retry in 30 seconds.",
        )
        self.assertEqual("30", answer.header("Retry-After"))

    def test_metadata_of_a_shelved_server(self) -> None:
        """Nova's own refusal, permanent until the server is unshelved."""
        server = self.boot()
        surgery.set_row(server, vm_state="shelved_offloaded")
        answer = self.ask(
            "POST", f"/servers/{server}/metadata", {"metadata": {"k": "v"}}
        )
        self._assert_seen(
            answer,
            f"Cannot 'update metadata' instance {server} while it is in "
            "vm_state shelved_offloaded.",
            "Possible now: unshelve, DELETE",
        )
        self.assertIsNone(answer.header("Retry-After"))
