# SPDX-License-Identifier: Apache-2.0
"""What a person is told, seen through openstacksdk.

Every reported case in which people wanted a refusal that explains itself,
under one set of rules. The message is the one that the SDK raises, which is
what its users, the command line and Ansible among them, get to see.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import keystoneauth1.adapter
import keystoneauth1.session
import openstack
from keystoneauth1 import token_endpoint
from nova import context, objects
from nova.db.main import api as main_db
from openstack import exceptions
from oslo_utils.fixture import uuidsentinel

from tests.functional import base
from tests.functional.cells.support import Trouble
from tests.functional.harness import surgery
from tests.functional.harness.keystone import Person

HOST = "rack7-node12"

RULES = """
"class:any": "not server.cell_up:false"
"class:power": >-
  rule:class:any and not server.locked:true and
  not server.host_up:false and not server.migration:evacuation
"class:network": "rule:class:any and not server.vm_state:error"
"class:metadata": "rule:class:any and not server.vm_state:shelved_offloaded"
"server:reboot_soft": "rule:class:power and not server.vm_state:error"
# Protection that binds administrators too, with a glass to break.
"server:delete": >-
  rule:class:any and (not server.locked:true or role:break-glass)
"""


#: What is another each time, and the word that stands for it: how long the
#: server has been in its state, and the id of the request that brought it
#: there.
_CHANGING = (
    (r"for \d+ (seconds?|minutes)\b", "for TIME"),
    (r"\(req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\)", "(REQUEST)"),
)


def _steady(sentence: str) -> str:
    """Return a sentence with words for what is another each time."""
    for pattern, word in _CHANGING:
        sentence = re.sub(pattern, word, sentence)
    return sentence


class TestThroughSdk(base.NovaTestCase):
    """Refusals as ``openstack.exceptions``."""

    RULES = RULES
    HOSTS = ((HOST, "cell1"),)

    def setUp(self) -> None:
        super().setUp()
        # Nova's tests keep the SDK from finding an address.
        self.stub_out(
            "openstack.proxy.Proxy.get_endpoint",
            keystoneauth1.adapter.Adapter.get_endpoint,
        )

    def test_c12_detach_in_error(self) -> None:
        """cluster-api-provider-openstack issue 959."""
        port = self.neutron.port_1["id"]
        server = self.boot(networks=[{"port": port}])
        self._break(server)
        self._assert_told(
            lambda sdk: sdk.delete_server_interface(port, server=server),
            f"Cannot 'detach_interface' instance {server} while it is in "
            "vm_state error. In this state for TIME, by action 'resetState'. "
            "It may pass once vm_state is active or building. Possible now: "
            "hard reboot, rebuild, DELETE, stop, rescue.",
            "wrong_state",
        )

    def test_c13_soft_reboot_in_error(self) -> None:
        """http://tzpst.hatenablog.com/entry/20130112/p1."""
        server = self.boot()
        self._break(server)
        self._assert_told(
            lambda sdk: sdk.reboot_server(server, "SOFT"),
            f"Cannot 'reboot' instance {server} while it is in vm_state "
            "error. In this state for TIME, by action 'resetState' (REQUEST). "
            "It may pass once vm_state is active or building. Possible now: "
            "hard reboot, rebuild, DELETE, stop, rescue.",
            "wrong_state",
        )

    def test_c20_metadata_of_a_shelved_server(self) -> None:
        """terraform-provider-openstack issue 1749: waiting does not help, so
        there is no Retry-After."""
        server = self.boot()
        self.act(server, "shelve")
        self._wait_for_state_change({"id": server}, "SHELVED_OFFLOADED")
        self._assert_told(
            lambda sdk: sdk.set_server_metadata(server, k="v"),
            f"Cannot 'create_metadata' instance {server} while it is in "
            "vm_state shelved_offloaded. In this state for TIME, by action "
            "'shelve'. It may pass once vm_state is active or building. "
            "Possible now: unshelve, DELETE, attach volume.",
            "wrong_state",
        )

    def test_c21_pause_of_a_locked_server(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/1256873."""
        server = self.boot()
        self._lock(server)
        self._assert_told(
            lambda sdk: sdk.pause_server(server),
            f"Cannot 'pause' instance {server} while it is locked "
            "(backup until noon). It may pass once it is unlocked. Possible "
            "now: unlock, create image.",
            "locked",
        )

    def test_c22_delete_of_a_locked_server_by_an_admin(self) -> None:
        """gophercloud issue 1222."""
        server = self.boot()
        self._lock(server)
        self._assert_told(
            lambda sdk: sdk.delete_server(server),
            f"Cannot 'delete' instance {server} while it is locked "
            "(backup until noon). It may pass once it is unlocked. Possible "
            "now: unlock, rebuild, create image, resize, attach volume.",
            "locked",
            who=base.OPERATOR,
        )
        glass = Person(
            "operator", base.OPERATOR_PROJECT, ("admin", "break-glass")
        )
        self._sdk(glass).delete_server(server)
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")

    def test_c24_stop_during_an_evacuation(self) -> None:
        """https://bugs.launchpad.net/masakari/+bug/1693728."""
        server = self.boot()
        self._evacuating(server)
        self._assert_told(
            lambda sdk: sdk.stop_server(server),
            f"Cannot 'stop' instance {server} while its compute service "
            "does not answer and it is being moved. It may pass once its "
            "compute service answers and it is not being moved. Possible "
            "now: DELETE. Retry in 30 seconds.",
            "host_down",
            retry_after="30",
        )

    def test_c28_stop_on_a_host_that_is_down(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/1978983."""
        server = self.boot()
        self.force_down(HOST)
        self._assert_told(
            lambda sdk: sdk.stop_server(server),
            f"Cannot 'stop' instance {server} while its compute service "
            "does not answer. It may pass once its compute service answers. "
            "Possible now: DELETE. Retry in 30 seconds.",
            "host_down",
            retry_after="30",
        )

    def test_c30_delete_while_the_cell_is_down(self) -> None:
        """https://bugs.launchpad.net/nova/+bug/1726301: temporary, and no
        500."""
        server = self.boot()
        admin = context.get_admin_context()
        with context.target_cell(admin, self.cell_mappings["cell1"]) as cell:
            trouble = Trouble(main_db.get_engine(context=cell))
        self.addCleanup(trouble.end)
        trouble.refuse()
        self._assert_told(
            lambda sdk: sdk.delete_server(server),
            f"Cannot 'delete' instance {server} while its state cannot be "
            "read. It may pass once its state can be read. Retry in 30 "
            "seconds.",
            "cell_down",
            retry_after="30",
            microversion="2.69",
        )
        trouble.end()

    # -- helpers -------------------------------------------------------------

    def _assert_told(
        self,
        ask: Callable[[Any], Any],
        sentence: str,
        code: str,
        *,
        retry_after: str | None = None,
        who: Person = base.OWNER,
        microversion: str = "2.90",
    ) -> None:
        """Ask, and compare what the SDK raises with what it should.

        :param sentence: the whole of it, with the words of ``_CHANGING``
        :param code: for programs
        :param retry_after: None where waiting does not help
        """
        refused = self.assertRaises(
            exceptions.ConflictException, ask, self._sdk(who, microversion)
        )
        # What the SDK shows is the sentence behind the address.
        self.assertTrue(str(refused).endswith(f", {refused.details}"))
        self.assertEqual(sentence, _steady(refused.details))
        self.assertLess(len(refused.details), 300)
        answer = refused.response
        self.assertEqual(409, answer.status_code)
        self.assertEqual(retry_after, answer.headers.get("Retry-After"))
        self.assertEqual(
            f"compute {microversion}", answer.headers["OpenStack-API-Version"]
        )
        told = answer.json()["conflictingRequest"]["state_policy"]
        self.assertEqual(code, told["code"])
        self.assertEqual(
            None if retry_after is None else int(retry_after),
            told["retry_after"],
        )
        self.assertNotIn(HOST, answer.text)

    def _sdk(self, who: Person, microversion: str = "2.90") -> Any:
        url = self.api_fixture.api.base_url
        session = keystoneauth1.session.Session(
            auth=token_endpoint.Token(url, "unused"),
            additional_headers=who.headers(),
        )
        connection = openstack.connection.Connection(
            session=session,
            compute_endpoint_override=url,
            compute_default_microversion=microversion,
        )
        return connection.compute

    def _break(self, server: str) -> None:
        reset = {"os-resetState": {"state": "error"}}
        self.act(server, reset, who=base.OPERATOR)

    def _lock(self, server: str) -> None:
        lock = {"lock": {"locked_reason": "backup until noon"}}
        self.assertEqual(202, self.act(server, lock).status)

    def _evacuating(self, server: str) -> None:
        """Leave the server between two steps of an evacuation."""
        surgery.set_row(server, task_state="rebuilding")
        self.force_down(HOST)
        with surgery.cell_of(server) as cell:
            objects.Migration(
                cell,
                instance_uuid=server,
                uuid=uuidsentinel.migration,
                migration_type="evacuation",
                status="accepted",
                source_compute=HOST,
                dest_compute="another",
            ).create()
