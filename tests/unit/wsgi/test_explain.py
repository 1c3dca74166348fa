# SPDX-License-Identifier: Apache-2.0
"""Nova's own refusals gain what we know; what is possible can be asked."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.drivers.memory.answers import REFUSED_VERSION
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.reading import Circumstances
from state_policy.wsgi import Filter
from tests.unit.wsgi.requests import (
    ADMIN,
    FOREIGNER,
    SERVER,
    Answer,
    Cloud,
    action,
    ask,
    environ,
)
from tests.unit.wsgi.rules import FACTS, driver, make

STATED = '"server:lock": "@"'
REQUEST = "req-5f2a0d0e-93c5-4b8c-9d0f-7a6b5c4d3e2f"
TEXT = f"Cannot 'pause' instance {SERVER} while it is in vm_state stopped"


class Refusing:
    """A cloud that refuses.

    :param lazy: whether it starts to answer when its body is read
    """

    def __init__(
        self,
        status: str = "409 Conflict",
        text: str = TEXT,
        lazy: bool = False,
    ) -> None:
        self.status = status
        self.fault = {"conflictingRequest": {"code": 409, "message": text}}
        self.lazy = lazy
        self.closed = False

    def __call__(self, request: Any, start_response: Any) -> Any:
        """Refuse."""
        content = json.dumps(self.fault).encode()
        headers = [
            ("Content-Length", str(len(content))),
            ("OpenStack-API-Version", "compute 2.1"),
        ]
        if not self.lazy:
            start_response(self.status, headers)
        return self._chunks(content, headers, start_response)

    def _chunks(
        self, content: bytes, headers: Any, start_response: Any
    ) -> Any:
        try:
            if self.lazy:
                start_response(self.status, headers)
            yield content[:5]
            yield content[5:]
        finally:
            self.closed = True


def reader(facts: Any = None, native: Any = ("start", "delete")) -> Driver:
    """Return a driver whose server is stopped."""
    known = {"server.vm_state": "stopped", **(facts or {})}
    found = driver(facts=known)
    busy = ("pause", "rebuild")

    def allowed(facts: Any) -> frozenset[str]:
        more = busy if facts["server.launched"] else ()
        return frozenset((*native, *more) if native == () else native)

    found.native = allowed
    found.servers[SERVER].circumstances = Circumstances(200.0, "stop", REQUEST)
    return found


def refused(found: Filter, caller: Any = None) -> Answer:
    """Return the answer to a pause."""
    return ask(
        found, action("pause", **({"caller": caller} if caller else {}))
    )


@pytest.mark.parametrize("lazy", [False, True])
def test_wrong_state(lazy: bool) -> None:
    cloud = Refusing(lazy=lazy)
    answer = refused(make(STATED, reader(), app=cloud))
    assert answer.status == "409 Conflict"
    assert answer.fault["message"] == (
        f"{TEXT}. In this state for 3 minutes, by action 'stop' ({REQUEST}). "
        "Possible now: start, DELETE."
    )
    assert answer.fault["state_policy"] == {
        "code": "wrong_state",
        "facts": {"vm_state": "stopped", "task_state": None, "locked": False},
        "possible": ["start", "delete"],
        "retry_after": None,
        "since": 200,
        "action": "stop",
        "request_id": REQUEST,
    }
    assert answer.fault["code"] == 409
    assert answer.header("Content-Length") == str(len(answer.body))
    assert answer.header("OpenStack-API-Version") == "compute 2.1"
    assert answer.header("Retry-After") is None
    assert cloud.closed


def test_passing_state_tells_when_to_retry() -> None:
    found = reader({"server.task_state": "powering-off"})
    answer = refused(make(STATED, found, app=Refusing()))
    assert answer.header("Retry-After") == "30"
    assert answer.fault["state_policy"]["code"] == "busy"
    assert answer.fault["message"].endswith("Retry in 30 seconds.")


def test_a_task_that_is_not_the_reason_is_nothing_to_wait_for() -> None:
    found = reader({"server.task_state": "image_uploading"})
    answer = refused(make(STATED, found, app=Refusing()))
    assert answer.fault["state_policy"]["code"] == "wrong_state"
    assert answer.header("Retry-After") is None


def test_a_build_passes_between_its_tasks() -> None:
    found = reader({"server.vm_state": "building", "server.launched": False})
    answer = refused(make(STATED, found, app=Refusing()))
    assert answer.fault["state_policy"]["code"] == "busy"
    assert answer.header("Retry-After") == "30"


def test_locked() -> None:
    found = reader({"server.locked": True})
    answer = refused(make(STATED, found, app=Refusing()))
    assert answer.fault["state_policy"]["code"] == "locked"
    # The lock is younger than the state, or older.
    assert "In this state for" not in answer.fault["message"]
    admin = refused(make(STATED, found, app=Refusing()), ADMIN)
    assert admin.fault["state_policy"]["code"] == "wrong_state"
    assert "In this state for" in admin.fault["message"]


def test_a_lock_does_not_explain_what_it_does_not_bind() -> None:
    """Nova takes images of locked servers: here the task is in the way."""
    found = reader({"server.locked": True, "server.task_state": "shelving"})
    filtered = make(STATED, found, app=Refusing())
    answer = ask(filtered, action("createImage", {"name": "i"}))
    assert answer.fault["state_policy"]["code"] == "busy"
    assert answer.header("Retry-After") == "30"


def test_never_launched() -> None:
    found = reader({"server.launched": False}, native=())
    answer = refused(make(STATED, found, app=Refusing()))
    assert answer.fault["state_policy"]["code"] == "never_launched"


def test_host_down() -> None:
    found = reader({"server.host_up": False}, native=("pause", "delete"))
    answer = refused(make(STATED, found, app=Refusing()))
    assert answer.fault["state_policy"]["code"] == "host_down"
    # It comes back by itself, as a rule of ours about it says too.
    ours = refused(make('"server:pause": "not server.host_up:false"', found))
    assert ours.fault["state_policy"]["code"] == "host_down"
    for told in (answer, ours):
        assert told.header("Retry-After") == "30"
        assert told.fault["state_policy"]["retry_after"] == 30
        assert "In this state for" not in told.fault["message"]
        assert told.fault["message"].endswith("Retry in 30 seconds.")


def test_host_down_explains_nothing_that_needs_no_host() -> None:
    found = reader({"server.host_up": False}, native=("update",))
    request = environ("PUT", f"/servers/{SERVER}", b'{"server": {}}')
    unexplained(make(STATED, found, app=Refusing()), request)


def unexplained(found: Filter, request: Any = None) -> None:
    """Assert that Nova's refusal comes through as it is."""
    app: Any = found.app
    expected = ask(app, action("pause"))
    assert ask(found, request or action("pause")) == expected


def test_other_conflicts_are_left_alone() -> None:
    found = reader(native=("pause",))
    unexplained(make(STATED, found, app=Refusing()))


@pytest.mark.parametrize("mode", ["warn", "audit"])
def test_other_modes_leave_refusals_alone(mode: str) -> None:
    unexplained(make(STATED, reader(), app=Refusing(), mode=mode))


def test_empty_file_leaves_refusals_alone() -> None:
    found = reader()
    unexplained(make("", found, app=Refusing()))
    assert found.asked == []


def test_foreigners_are_told_nothing() -> None:
    found = make(STATED, reader(), app=Refusing())
    unexplained(found, action("pause", caller=FOREIGNER))


@pytest.mark.parametrize("status", ["202 Accepted", "404 Not Found"])
@pytest.mark.parametrize("lazy", [False, True])
def test_other_answers_cost_nothing(status: str, lazy: bool) -> None:
    found = reader()
    unexplained(make(STATED, found, app=Refusing(status, lazy=lazy)))
    assert found.asked == []


def test_a_refusal_that_is_no_fault_of_nova_s() -> None:
    cloud = Refusing()
    cloud.fault = {}
    unexplained(make(STATED, reader(), app=cloud))


def test_failing_explanations_leave_refusals_alone() -> None:
    found = reader()
    found.servers.clear()
    unexplained(make(STATED, found, app=Refusing()))


@pytest.mark.parametrize("length", [280, 298, 299, 300, 2000])
def test_long_refusals_keep_their_text(length: int) -> None:
    text = "x" * length
    answer = refused(make(STATED, reader(), app=Refusing(text=text)))
    assert answer.fault["message"] == text


# -- allowed actions ----------------------------------------------------------

ALLOWED = f"/servers/{SERVER}/allowed-actions"


def allowed(found: Filter, **more: Any) -> dict[str, Any]:
    """Return what is allowed by the operation's name."""
    answer = ask(found, environ("GET", ALLOWED, **more))
    assert answer.code == 200
    items = answer.json["allowed_actions"]
    return {item.pop("operation"): item for item in items}


def test_what_is_allowed_and_why_not() -> None:
    known = driver(
        native=lambda facts: frozenset(OPERATIONS) - {"start"},
        forbidden={OPERATIONS["evacuate"].gate},
    )
    text = '"server:stop": "server.vm_state:stopped"\n"server:pause": "!"'
    found = allowed(make(text, known))
    assert found["delete"] == {"allowed": True}
    assert found["start"] == {
        "allowed": False,
        "code": "state",
        "message": f"Cannot 'start' instance {SERVER} while it is in "
        "vm_state active.",
    }
    assert found["evacuate"]["code"] == "rights"
    assert found["evacuate"]["message"]
    assert found["pause"]["code"] == "policy"
    assert found["stop"]["code"] == "wrong_state"
    assert found["stop"]["message"].startswith("Cannot 'stop' instance")
    assert "show" not in found
    assert len(found) == len(
        [op for op in OPERATIONS.values() if "read" not in op.classes]
    )


def test_quarantine_is_not_betrayed() -> None:
    text = '"server:delete:quarantine": "server.vm_state:active"'
    assert allowed(make(text, driver()))["delete"] == {"allowed": True}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            STATED,
            {
                "allowed": False,
                "code": "deleting",
                "message": f"Cannot 'delete' instance {SERVER} while it is "
                "being deleted.",
                "retry_after": 30,
            },
        ),
        (
            '"server:delete:quarantine": "rule:deleting and'
            ' server.state_age:>=15m"',
            {"allowed": True},
        ),
        ('"server:delete:escalate": "rule:deleting"', {"allowed": True}),
    ],
)
def test_deletes_of_what_is_being_deleted(text: str, expected: Any) -> None:
    facts = {"server.task_state": "deleting"}
    found = allowed(make(text, driver(facts=facts)))
    assert found["delete"] == expected
    if text == STATED:
        assert found["force_delete"]["code"] == "deleting"
    down = allowed(
        make(text, driver(facts={**facts, "server.host_up": False}))
    )
    assert down["delete"] == {"allowed": True}


def test_what_nova_s_flag_keeps_is_not_deleted() -> None:
    """What the flag is called is nobody's business; Nova does not show it."""
    facts = {"server.disable_terminate": True}
    text = '"server:delete:quarantine": "server.vm_state:active"'
    found = allowed(make(text, driver(facts=facts)))
    assert found["delete"] == {
        "allowed": False,
        "code": "policy",
        "message": f"Cannot 'delete' instance {SERVER}: the policy of this "
        "cloud forbids it.",
    }


def test_only_a_state_that_passes_is_to_be_waited_for() -> None:
    def native(facts: Any) -> frozenset[str]:
        return frozenset() if facts["server.task_state"] else {"pause"}

    facts = {"server.task_state": "image_uploading"}
    found = allowed(make(STATED, driver(facts=facts, native=native)))
    assert found["pause"]["retry_after"] == 30
    assert "retry_after" not in found["unpause"]
    facts = {"server.task_state": "powering-off"}
    found = allowed(make(STATED, driver(facts=facts, native=native)))
    assert found["unpause"]["retry_after"] == 30


def test_locked_servers_can_be_unlocked() -> None:
    found = allowed(make(STATED, driver(facts={"server.locked": True})))
    assert found["stop"] == {
        "allowed": False,
        "code": "locked",
        "message": f"Cannot 'stop' instance {SERVER} while it is locked.",
    }
    assert found["unlock"] == {"allowed": True}


@pytest.mark.parametrize(
    ("refuse", "expected"),
    [
        (False, {"allowed": True, "undecided": True}),
        (True, {"allowed": False, "code": "unreadable"}),
    ],
)
def test_what_cannot_be_read_follows_on_unknown(
    refuse: bool, expected: Any
) -> None:
    """As the request itself would: it is passed on, or refused."""
    known = driver()
    del known.servers[SERVER].facts["server.vm_state"]
    text = '"server:stop": "server.vm_state:stopped"'
    filtered = make(text, known, refuse_unknown=refuse)
    found = allowed(filtered)["stop"]
    assert expected.items() <= found.items()
    code = ask(filtered, action("os-stop")).code
    assert (code == 202) is found["allowed"]


def test_cell_down() -> None:
    """Nova has no better answer than a 500 then; nothing can be done."""
    known = driver(native=lambda facts: None)
    known.servers[SERVER].facts = {"server.cell_up": False}
    text = '"server:stop": "!"\n"server:pause": "server.vm_state:active"'
    found = allowed(make(text, known))
    assert found["unlock"] == {
        "allowed": False,
        "code": "cell_down",
        "message": f"Cannot 'unlock' instance {SERVER} while its state "
        "cannot be read.",
        "retry_after": 30,
    }
    assert found["stop"]["code"] == "policy"
    codes = {item.get("code") for item in found.values()}
    assert codes == {"cell_down", "policy"}
    found = allowed(make(text, known, refuse_unknown=True))
    assert found["pause"]["code"] == "unreadable"


def test_what_nova_takes_is_not_known() -> None:
    known = driver(native=lambda facts: None)
    found = allowed(make(STATED, known))
    assert found["stop"] == {"allowed": True, "undecided": True}


def test_host_down_is_told_of_what_needs_the_host() -> None:
    found = allowed(make(STATED, driver(facts={"server.host_up": False})))
    assert found["stop"] == {
        "allowed": False,
        "code": "host_down",
        "message": f"Cannot 'stop' instance {SERVER} while its compute "
        "service does not answer.",
        "retry_after": 30,
    }
    for name in ("delete", "update", "evacuate"):
        assert found[name] == {"allowed": True}
    alive = allowed(make(STATED, driver()))["evacuate"]
    assert alive["code"] == "state"
    assert alive["message"].endswith("while its compute service answers.")


def test_what_is_told_and_what_is_offered_agree() -> None:
    """A refusal offers nothing that the list says is not allowed."""
    for facts in (
        {"server.host_up": False},
        {"server.cell_up": False},
        {"server.locked": True},
        {"server.task_state": "deleting"},
        {},
    ):
        for native in (
            lambda facts: None,
            lambda facts: frozenset(OPERATIONS),
        ):
            known = driver(facts=facts, native=native)
            found = make('"server:shelve": "!"', known)
            told = allowed(found)
            answer = ask(found, action("shelve"))
            for name in answer.fault["state_policy"]["possible"]:
                assert told[name] == {"allowed": True}, (facts, name)


def test_a_version_that_there_is_not_is_refused() -> None:
    found = make(STATED, driver())
    answer = ask(
        found,
        environ(
            "GET",
            ALLOWED,
            HTTP_OPENSTACK_API_VERSION=REFUSED_VERSION,
        ),
    )
    assert answer.code == 406


def test_of_a_build_request_nova_takes_little() -> None:
    found = allowed(
        make(
            STATED,
            driver(
                [MemoryServer(SERVER, facts=dict(FACTS), build_request=True)]
            ),
        )
    )
    assert {n for n, item in found.items() if item["allowed"]} == {
        "update",
        "delete",
        "force_delete",
    }


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {"server.task_state": "deleting"},
            "in vm_state active and task_state deleting.",
        ),
        (
            {"server.launched": False},
            "in vm_state active and was never launched.",
        ),
    ],
)
def test_the_state_is_named(facts: Any, said: str) -> None:
    known = driver(facts=facts, native=lambda facts: frozenset())
    assert allowed(make(STATED, known))["pause"]["message"].endswith(said)


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (STATED, {"caller": FOREIGNER}),
        (STATED, {"caller": None}),
        ("", {}),
    ],
)
def test_others_get_what_the_cloud_says(text: str, more: Any) -> None:
    cloud = Cloud()
    found = make(text, driver(), app=cloud)
    answer = ask(found, environ("GET", ALLOWED, **more))
    assert (answer.code, len(cloud.seen)) == (202, 1)


def test_only_get_of_a_server_asks() -> None:
    found = make(STATED, driver())
    boot = f"/os-volumes_boot/{SERVER}/allowed-actions"
    for request in (environ("POST", ALLOWED, b"{}"), environ("GET", boot)):
        assert ask(found, request).code == 202


def test_off() -> None:
    found = replace(make(STATED, driver()), allowed=None, conflicts=None)
    assert ask(found, environ("GET", ALLOWED)).code == 202
    assert ask(found, action("pause")).code == 202
