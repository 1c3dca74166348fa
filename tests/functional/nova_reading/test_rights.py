# SPDX-License-Identifier: Apache-2.0
"""Callers x servers x operations: the driver's judgement against Nova's.

Nova is asked through its own pipeline, without the filter. As soon as Nova's
policy has let the caller pass the operation's gate the request is broken off,
so that nothing is done and every server stays as it is.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from nova import context as nova_context
from nova import policy
from nova.compute import api as compute
from nova.db.main import api as main_db

from state_policy.drivers.nova import rights
from state_policy.engine.operations import OPERATIONS, Operation
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.harness.keystone import Person
from tests.functional.nova_reading import requests
from tests.functional.nova_reading.reading import ReadingTestCase, caller_of


@dataclass(frozen=True)
class Scoped(Person):
    """A caller whose token is scoped to the system, or to a domain."""

    scope: str = "system"

    def headers(self) -> dict[str, str]:
        found = super().headers()
        for name in ("X-Project-Id", "X-Auth-Project-Id"):
            del found[name]
        if self.scope == "system":
            found["OpenStack-System-Scope"] = "all"
        else:
            found["X-Domain-Id"] = uuid.uuid4().hex
        return found


PEOPLE = {
    "owner": base.OWNER,
    "colleague": Person("colleague", base.OWNER_PROJECT),
    "manager": Person(
        "manager", base.OWNER_PROJECT, ("manager", "member", "reader")
    ),
    "reader": base.READER,
    "no role": base.NOBODY,
    "foreigner": base.FOREIGNER,
    "foreign reader": Person("fr", base.FOREIGN_PROJECT, ("reader",)),
    "admin": base.OPERATOR,
    "admin of the project": Person(
        "pa", base.OWNER_PROJECT, ("admin", "member", "reader")
    ),
    "service": base.NEUTRON,
    "owner through a service": Person(
        "owner", base.OWNER_PROJECT, service_roles=("service",)
    ),
    "foreigner through a service": Person(
        "foreigner", base.FOREIGN_PROJECT, service_roles=("service",)
    ),
    "helpdesk": Person("helpdesk", base.OWNER_PROJECT, ("helpdesk",)),
    "system admin": Scoped("sa", "", ("admin", "member", "reader")),
    "system reader": Scoped("sr", "", ("reader",)),
    "domain admin": Scoped("da", "", ("admin",), scope="domain"),
}

#: A deployer's own policy: the helpdesk may reboot and lock, nobody may
#: pause, only the user who made a server may stop it, and so on.
CUSTOM = {
    "os_compute_api:servers:reboot": "role:helpdesk or role:member",
    "os_compute_api:os-lock-server:lock": "role:helpdesk",
    "os_compute_api:os-pause-server:pause": "!",
    "os_compute_api:servers:stop": "user_id:%(user_id)s",
    # Nova names no user here, so that this is false for everybody.
    "os_compute_api:os-suspend-server:resume": "user_id:%(user_id)s",
    "os_compute_api:servers:create_image": "@",
    "os_compute_api:os-lock-server:unlock:unlock_override": "role:manager",
}


@dataclass(frozen=True)
class Block:
    """A part of the matrix.

    :ivar kinds: of servers; None: all
    """

    people: tuple[str, ...]
    kinds: tuple[str, ...] | None
    operations: tuple[Operation, ...]


def _product(
    blocks: Iterable[Block], servers: Mapping[str, str]
) -> Iterator[tuple[str, str, Operation]]:
    for block in blocks:
        yield from itertools.product(
            block.people, block.kinds or servers, block.operations
        )


def told_more(name: str, kind: str, operation: Operation) -> bool:
    """Return whether Nova lets somebody pass whom we do not.

    It asks about the consoles of its old API without a server, and shows a
    build request to everybody: strangers come as far as "not ready". The
    request goes on to Nova, and we tell a stranger nothing.
    """
    return (
        name.startswith("foreigner")
        and kind == "a build request"
        and operation.name in requests.OLD_CONSOLES
    )


class _PassedError(BaseException):
    """Nova's policy let the caller pass; not caught on its way out."""


def rest_cells() -> None:
    """Put Nova's fixture of cells back where a request leaves it.

    CellDatabases (nova.tests.fixtures, 34.0.0) does so itself at the end of
    ``target_cell``, but not where a request is broken off in it; the next
    one that targets no cell would then fail with 500.
    """
    cells = nova_context.target_cell.__self__
    with cells._cell_lock.write_lock():
        cells._last_ctxt_mgr = cells._default_ctxt_mgr


class RightsTestCase(ReadingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.gate = ""
        self.passed = self.found = False
        self.targets: dict[str, Any] = {}

    def servers(self) -> dict[str, str]:
        """Return a server of each kind."""
        found = {
            "active": self.boot(),
            "locked by an admin": self.boot(),
            "locked by its owner": self.boot(),
            "deleted": self.boot(),
            "absent": str(uuid.uuid4()),
        }
        self.act(found["locked by an admin"], "lock", who=base.OPERATOR)
        self.act(found["locked by its owner"], "lock")
        self.delete(found["deleted"])
        self.wait_for(
            lambda: surgery.row(found["deleted"])["deleted"], "deleted"
        )
        self.force_down()
        found["in cell0"] = self.boot(expected="ERROR")
        self.stub_out(
            "nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances",
            lambda *_, **__: None,
        )
        found["a build request"] = self.boot(expected=None)
        return found

    def watch(self) -> None:
        """Break requests off once the server is found and the gate passed.

        Nova asks in the one order or in the other. Only Nova's own asking
        counts: not what the filter asks before, nor what a compute service
        reads in a thread of its own, in nobody's name.
        """
        authorize, get = policy.authorize, compute.API.get
        get_row = main_db.instance_get_by_uuid
        may, asking = rights.Rights.may, threading.local()

        def filter_asks(*args: Any) -> bool:
            asking.filter = True
            try:
                return may(*args)
            finally:
                asking.filter = False

        def watched(context: Any, action: str, *rest: Any) -> Any:
            allowed = authorize(context, action, *rest)
            if getattr(asking, "filter", False):
                return allowed
            if action == self.gate:
                self.targets[action] = rest[0] if rest else None
                self.passed = True
                if self.found and action != rights.UNLOCK:
                    raise _PassedError
            return allowed

        def found_row(context: Any, *args: Any, **kwargs: Any) -> Any:
            row = get_row(context, *args, **kwargs)
            self.found |= context.user_id is not None
            return row

        def found(*args: Any, **kwargs: Any) -> Any:
            server = get(*args, **kwargs)
            self.found = True
            if self.passed:
                raise _PassedError
            return server

        def unlock(*_: Any) -> None:
            raise _PassedError

        self.stub_out(
            "state_policy.drivers.nova.rights.Rights.may", filter_asks
        )
        self.stub_out("nova.policy.authorize", watched)
        self.stub_out("nova.db.main.api.instance_get_by_uuid", found_row)
        self.stub_out("nova.compute.api.API.get", found)
        self.stub_out("nova.compute.api.API.unlock", unlock)

    def nova_lets_pass(
        self, who: Person, operation: Operation, server: str
    ) -> bool | None:
        """Return what Nova says; None where neither yes nor no."""
        rest_cells()
        self.gate, self.passed, self.found = operation.gate, False, False
        self.answer: base.Answer | None = None
        try:
            answer = self.ask(
                operation.method,
                requests.path(operation, server),
                requests.body(operation),
                who=who,
                microversion=requests.microversion(operation),
            )
        except _PassedError:
            return True
        finally:
            passed, self.passed, self.gate = self.passed, False, ""
        self.answer = answer
        if answer.status < 300:
            return True
        # A token without a project that is no admin's is shown no row at
        # all, and Nova fails on that (NovaException: "cell ... returned an
        # exception").
        if isinstance(who, Scoped) and answer.status == 500:
            return False
        if answer.status not in (403, 404):
            return None
        # Some part of the server that is not there: the server is.
        gone = answer.status == 404 and "Instance" not in answer.message
        return passed and gone

    def compare(self, *blocks: Block) -> None:
        """Compare the products of people, kinds of servers and operations."""
        servers = self.servers()
        places = {k: self.driver.locate(s) for k, s in servers.items()}
        self.watch()
        wrong, unclear, counts = [], [], {True: 0, False: 0}
        for name, kind, operation in _product(blocks, servers):
            person = PEOPLE[name]
            theirs = self.nova_lets_pass(person, operation, servers[kind])
            if theirs is None:
                unclear.append((name, kind, operation.name, self.answer))
                continue
            place = places[kind]
            ours = place is not None and self.driver.may(
                caller_of(person), place, operation.gate
            )
            counts[theirs] += 1
            if ours is not theirs and not told_more(name, kind, operation):
                wrong.append((name, kind, operation.name, theirs))
        print(f"compared {counts}, {wrong}")
        assert not unclear, f"{len(unclear)} of another kind: {unclear[:9]}"
        assert not wrong, f"{len(wrong)} differ: {wrong[:20]}"
        assert min(counts.values()) > 50
        self.check_targets()

    def check_targets(self) -> None:
        for gate, target in self.targets.items():
            if target is not None:
                by_user = "user_id" in target
                assert by_user == (gate in rights.BY_USER), gate


#: Nova looks for the floating IP before it asks whether the caller may; the
#: gates of both directions are the same.
ALL = tuple(
    operation
    for operation in OPERATIONS.values()
    if operation.name != "remove_floating_ip"
)

#: One for each way in which Nova finds the server and asks about it.
SOME = tuple(
    OPERATIONS[name]
    for name in (
        "delete",
        "start",
        "unlock",
        "get_vnc_console",
        "list_tags",
    )
)


#: Callers who differ from another only in which servers they see.
AKIN = (
    "colleague",
    "foreign reader",
    "foreigner through a service",
    "system reader",
    "domain admin",
)


class TestNovasOwnPolicy(RightsTestCase):
    def test_matrix(self) -> None:
        """Each way of asking whole; all operations are in test_matrix."""
        self.compare(
            Block(tuple(PEOPLE), None, SOME),
            Block(("owner",), ("a build request", "in cell0"), ALL),
        )

    @pytest.mark.stress
    def test_whole_matrix(self) -> None:
        self.compare(Block(tuple(PEOPLE), None, ALL))


class TestCustomPolicy(RightsTestCase):
    def test_matrix(self) -> None:
        self.policy.set_rules(CUSTOM, overwrite=False)
        custom = tuple(op for op in ALL if op.gate in CUSTOM)
        self.compare(
            Block(tuple(PEOPLE), ("active", "a build request"), custom)
        )

    def test_unlock_of_another_ones_lock(self) -> None:
        """The override is a right of its own."""
        servers = self.servers()
        for kind, who, may in (
            ("locked by an admin", base.OWNER, False),
            ("locked by its owner", base.OWNER, True),
            ("locked by an admin", base.OPERATOR, True),
            ("locked by its owner", base.OPERATOR, True),
            ("active", base.OWNER, True),
        ):
            server = servers[kind]
            found = self.driver.may(
                caller_of(who), self.locate(server), rights.UNLOCK
            )
            assert found is may, (kind, who)
            answer = self.act(server, "unlock", who=who)
            assert (answer.status == 202) is may, (kind, who, answer)
            if "locked" in kind and may:
                locker = base.OWNER if "owner" in kind else base.OPERATOR
                self.act(server, "lock", who=locker)
