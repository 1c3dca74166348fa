# SPDX-License-Identifier: Apache-2.0
"""Real Nova in one process, with the filter in both of its pipelines.

A test derives from :class:`NovaTestCase` and says as class attributes what it
needs::

    class TestRefusal(base.NovaTestCase):
        RULES = '"server:reboot": "server.vm_state:active"'

        def test_it(self):
            server = self.boot()
            self.hold("snapshot")           # blocks in the hypervisor
            answer = self.ask("POST", f"/servers/{server}/action", {...})

Casts are casts (``CAST_AS_CALL`` is off): the API answers before compute is
done, as in a deployment. A test takes three to six seconds.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import nova.conf
import webob
from nova import context
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures.nova import PROJECT_ID
from nova.tests.functional import integrated_helpers
from nova.tests.functional.api import client as api_client
from nova.virt import fake
from oslo_utils.fixture import uuidsentinel

from tests.functional.harness import keystone, paste, surgery
from tests.functional.harness.holds import PATIENCE, Hold
from tests.functional.harness.keystone import Person
from tests.functional.harness.pytesting import KeepsTestMethod
from tests.functional.harness.statements import Statements

#: The ports of Nova's fake Neutron are this project's.
OWNER_PROJECT: str = PROJECT_ID
FOREIGN_PROJECT = uuidsentinel.foreign_project.replace("-", "")
OPERATOR_PROJECT = uuidsentinel.operator_project.replace("-", "")
QUARANTINE_PROJECT = uuidsentinel.quarantine_project.replace("-", "")

OWNER = Person("owner", OWNER_PROJECT)
READER = Person("reader", OWNER_PROJECT, ("reader",))
NOBODY = Person("nobody", OWNER_PROJECT, ("other",))
FOREIGNER = Person("foreigner", FOREIGN_PROJECT)
OPERATOR = Person(
    "operator", OPERATOR_PROJECT, ("admin", "manager", "member", "reader")
)
INSPECTOR = Person("inspector", QUARANTINE_PROJECT)
NEUTRON = Person("neutron", uuidsentinel.service_project, ("admin", "service"))

#: The quarantine on, with its project and a user of its own.
QUARANTINED: Mapping[str, Any] = {
    "enabled": True,
    "projects": [QUARANTINE_PROJECT],
    "user": "quarantine-user",
}


@dataclass(frozen=True)
class Answer:
    """One answer of the API, as it left the pipeline.

    :ivar headers: name and value, in their order
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return a header's value, or None."""
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    @property
    def json(self) -> Any:
        """Return the body, decoded."""
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """Return the sentence inside Nova's one-keyed fault body."""
        (fault,) = self.json.values()
        text: str = fault["message"]
        return text


class NovaTestCase(KeepsTestMethod, integrated_helpers._IntegratedTestBase):
    """Nova with its services, five callers and the filter.

    :cvar FILTERED: whether the filter stands in both pipelines
    :cvar RULES: text of the policy file; None: no file is named
    :cvar OPTIONS: options of ``[state_policy]``, by their names
    :cvar QUARANTINE: options of ``[state_policy_quarantine]``
    :cvar PASTE_OPTIONS: local options of the filter's paste section
    :cvar HOSTS: compute hosts to start, with their cells
    """

    FILTERED: ClassVar[bool] = True
    RULES: ClassVar[str | None] = None
    OPTIONS: ClassVar[Mapping[str, Any]] = {}
    QUARANTINE: ClassVar[Mapping[str, Any]] = {}
    PASTE_OPTIONS: ClassVar[Mapping[str, str]] = {}
    HOSTS: ClassVar[tuple[tuple[str, str], ...]] = (("compute", "cell1"),)

    REQUIRES_LOCKING = False
    CAST_AS_CALL = False
    microversion = "2.90"

    # -- start ---------------------------------------------------------------

    def _setup_compute_service(self) -> Any:
        """Start every host of ``HOSTS``; part of Nova's base class."""
        started = [
            self._start_compute(host, cell_name=cell)
            for host, cell in self.HOSTS
        ]
        return started[0]

    def _setup_services(self) -> None:
        """Write the files, start Nova; part of Nova's base class."""
        self.directory = Path(tempfile.mkdtemp())
        self.policy_file = self.directory / "state_policy.yaml"
        if self.RULES is not None:
            self.policy_file.write_text(self.RULES)
        self.flags(api_paste_config=str(self._write_paste()), group="wsgi")
        self._use_nova_policy()
        if self.FILTERED:
            self._set_options()
        super()._setup_services()
        self.stub_out(
            "nova.api.auth.NovaKeystoneContext._create_context",
            keystone.make_context,
        )
        self.owner = self.client(OWNER)
        self.operator = self.client(OPERATOR)
        self.api, self.admin_api = self.owner, self.operator

    def _use_nova_policy(self) -> None:
        """Enforce Nova's defaults as a deployment of today does.

        Placement's test fixture turns oslo.policy's enforce_new_defaults
        off, and with it a reader may delete servers.
        """
        self.flags(enforce_new_defaults=True, group="oslo_policy")
        self.policy = self.useFixture(nova_fixtures.RealPolicyFixture())

    def _write_paste(self) -> Path:
        text = paste.installed().read_text()
        if self.FILTERED:
            text = paste.with_filter(text, self.PASTE_OPTIONS)
        file = self.directory / "api-paste.ini"
        file.write_text(text)
        return file

    def load(self, paste_text: str) -> Any:
        """Return a second API application beside the started one.

        Both work on the same databases and services.
        """
        # Not before the rest of Nova: it needs webob.dec and imports it not.
        from nova.api import wsgi

        file = self.directory / f"{uuid.uuid4()}.ini"
        file.write_text(paste_text)
        return wsgi.Loader(str(file)).load_app("osapi_compute")

    def _set_options(self) -> None:
        from state_policy import conf

        conf.register_opts(nova.conf.CONF)
        options = dict(self.OPTIONS)
        if self.RULES is not None:
            options.setdefault("policy_file", str(self.policy_file))
        for group, values in (
            ("state_policy", options),
            ("state_policy_quarantine", self.QUARANTINE),
        ):
            if values:
                self.flags(group=group, **values)

    # -- asking --------------------------------------------------------------

    def client(
        self, person: Person, microversion: str | None = microversion
    ) -> api_client.TestOpenStackClient:
        """Return Nova's own test client for a caller."""
        found = api_client.TestOpenStackClient(
            person.user_id,
            self.api_fixture.api.base_url,
            project_id=person.project_id,
            roles=list(person.roles),
        )
        found.microversion = microversion
        return found

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        who: Person = OWNER,
        prefix: str = "/v2.1",
        microversion: str | None = microversion,
        headers: Mapping[str, str] | None = None,
        app: Any = None,
    ) -> Answer:
        """Send one request through the whole pipeline, in this thread.

        :param body: bytes are sent as they are, anything else as JSON
        :param prefix: ``/v2.1`` or ``/v2``: which of the two pipelines
        :param microversion: None: no version headers
        :param app: another WSGI application than the started one
        """
        request = webob.Request.blank(prefix + path, method=method)
        request.headers.update(who.headers())
        if microversion is not None:
            request.headers["OpenStack-API-Version"] = (
                f"compute {microversion}"
            )
            request.headers["X-OpenStack-Nova-API-Version"] = microversion
        if body is not None:
            request.content_type = "application/json"
            raw = isinstance(body, bytes)
            request.body = body if raw else json.dumps(body).encode()
        request.headers.update(headers or {})
        answer = request.get_response(app or self.api_fixture.app())
        return Answer(answer.status_int, tuple(answer.headerlist), answer.body)

    def act(self, server_id: str, action: Any, **more: Any) -> Answer:
        """POST an action; a string stands for an action without arguments."""
        body = {action: None} if isinstance(action, str) else action
        return self.ask("POST", f"/servers/{server_id}/action", body, **more)

    def delete(self, server_id: str, **more: Any) -> Answer:
        """DELETE a server."""
        return self.ask("DELETE", f"/servers/{server_id}", **more)

    # -- servers -------------------------------------------------------------

    def boot(self, expected: str | None = "ACTIVE", **more: Any) -> str:
        """Have a server created by its owner and return its id.

        :param expected: the status to wait for; None: do not wait
        :param more: arguments of Nova's ``_build_server``
        """
        more.setdefault("networks", "none")
        body = self._build_server(**more)
        server = self.owner.post_server({"server": body})
        if expected is not None:
            self._wait_for_state_change(server, expected)
        found: str = server["id"]
        return found

    def boot_held(self, **more: Any) -> tuple[str, Hold]:
        """Have a server created whose build blocks in the hypervisor."""
        hold = self.hold("spawn")
        server_id = self.boot(expected=None, **more)
        hold.wait_reached()
        return server_id, hold

    def wait_task(self, server_id: str, wanted: str | None) -> None:
        """Wait until a server's row has a task_state."""
        self.wait_for(
            lambda: surgery.row(server_id)["task_state"] == wanted,
            f"task_state {wanted}",
        )

    def wait_for(self, ready: Callable[[], Any], what: str) -> None:
        """Wait until something is so; fail with what it was."""
        self._wait_for_assert(
            lambda: self.assertTrue(ready(), what),
            max_retries=PATIENCE * 10,
            sleep=0.1,
        )

    def hold(
        self, method: str, wanted: Callable[..., bool] | None = None
    ) -> Hold:
        """Block a method of the hypervisor: spawn, destroy, snapshot ...

        Released at the end of the test at the latest.

        :param wanted: asked with the call's arguments whether to block it
        """
        hold = Hold(getattr(fake.FakeDriver, method), wanted)
        self.stub_out(f"nova.virt.fake.FakeDriver.{method}", hold.method())
        self.addCleanup(hold.wait_left)
        self.addCleanup(hold.release)
        return hold

    def force_down(self, host: str = "compute", down: bool = True) -> None:
        """Tell Nova that a compute host is down, as a fencing agent does."""
        (service,) = self.operator.get_services(
            host=host, binary="nova-compute"
        )
        self.operator.put_service(service["id"], {"forced_down": down})

    def used(self, who: Person = OWNER) -> dict[str, int]:
        """Return what a project uses: instances, cores, ram (MiB)."""
        limits = self.ask("GET", "/limits", who=who).json
        absolute = limits["limits"]["absolute"]
        return {
            "instances": absolute["totalInstancesUsed"],
            "cores": absolute["totalCoresUsed"],
            "ram": absolute["totalRAMUsed"],
        }

    def listed(self, who: Person = OWNER, query: str = "") -> list[str]:
        """Return the ids of the servers that a caller's list shows."""
        answer = self.ask("GET", f"/servers{query}", who=who)
        return [server["id"] for server in answer.json["servers"]]

    # -- counting ------------------------------------------------------------

    def statements(self, every_thread: bool = False) -> Statements:
        """Return a ``with`` block that records SQL by database.

        :param every_thread: count other threads' statements too (compute,
            Nova's scatter-gather), not only those of the request
        """
        names = {id(api_db.get_engine()): "api"}
        admin = context.get_admin_context()
        for name, mapping in self.cell_mappings.items():
            with context.target_cell(admin, mapping) as cell:
                names[id(main_db.get_engine(context=cell))] = name
        return Statements(names, every_thread)
