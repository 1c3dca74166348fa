# SPDX-License-Identifier: Apache-2.0
"""What a person reads, as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from state_policy.engine import phrases, sentence
from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Age
from state_policy.engine.ports.reading import Circumstances
from tests.unit.wsgi.rules import FACTS, rules

ID = "0b1e6f0c-9a53-4d5e-8b8e-1f2a3b4c5d6e"
REQUEST = "req-5f2a0d0e-93c5-4b8c-9d0f-7a6b5c4d3e2f"


def told(
    rule: str,
    facts: Any = None,
    *,
    operation: str = "rebuild",
    circumstances: Circumstances | None = None,
    possible: tuple[str, ...] = (),
) -> str:
    """Return the sentence for an operation that a rule refuses."""
    decision = decided(rule, facts, operation)
    assert decision.verdict is not Verdict.ALLOW
    return sentence.tell(
        decision, ID, circumstances or Circumstances(), possible
    )


def decided(
    rule: str, facts: Any = None, operation: str = "rebuild"
) -> Decision:
    """Return the decision of one rule."""
    text = f'"server:{operation}": "{rule}"'
    return decide(rules(text), operation, {**FACTS, **(facts or {})})


def test_during_a_snapshot() -> None:
    text = told(
        "not rule:snapshotting",
        {"server.task_state": "image_snapshot"},
        circumstances=Circumstances(200.0, "createImage", REQUEST),
        possible=("delete",),
    )
    assert text == (
        f"Cannot 'rebuild' instance {ID} while it is in task_state "
        "image_snapshot. In this state for 3 minutes, by action "
        f"'createImage' ({REQUEST}). It may pass once no task is running. "
        "Possible now: DELETE. Retry in 30 seconds."
    )
    assert len(text) <= sentence.LIMIT


@pytest.mark.parametrize(
    ("rule", "facts", "wanted"),
    [
        (
            "server.vm_state:stopped",
            {},
            "while it is in vm_state active. It may pass once vm_state is "
            "stopped.",
        ),
        (
            "not server.locked:true",
            {"server.locked": True},
            "while it is locked. It may pass once it is unlocked.",
        ),
        (
            "not server.host_up:false",
            {"server.host_up": False},
            "while its compute service does not answer. It may pass once its "
            "compute service answers. Retry in 30 seconds.",
        ),
        (
            "not server.cell_up:false",
            {"server.cell_up": False},
            "while its state cannot be read. It may pass once its state can "
            "be read. Retry in 30 seconds.",
        ),
        (
            "server.launched:true",
            {"server.launched": False},
            "while it was never launched. Waiting does not help.",
        ),
        (
            "server.state_age:>=2h",
            {},
            "while it has been in its state for 60 minutes. It may pass once "
            "60 minutes more have passed. Retry in 3600 seconds.",
        ),
        (
            "not server.hypervisor:secret-hypervisor",
            {},
            ": the policy of this cloud forbids it. Waiting does not help.",
        ),
        (
            "role:nobody",
            {"caller": {"roles": []}},
            ": the policy of this cloud forbids it. Waiting does not help.",
        ),
        ("!", {}, ": the policy of this cloud forbids it. Waiting does not"),
    ],
)
def test_reasons(rule: str, facts: Any, wanted: str) -> None:
    joined = told(rule, facts)
    start = f"Cannot 'rebuild' instance {ID}"
    assert joined.startswith(start)
    assert joined.removeprefix(start).lstrip().startswith(wanted)


@pytest.mark.parametrize(
    ("rule", "facts", "wanted"),
    [
        (
            "server.locked:false and server.host_up:true",
            {"server.locked": True, "server.host_up": False},
            "It may pass once it is unlocked and its compute service answers.",
        ),
        (
            "server.locked:false or server.host_up:true",
            {"server.locked": True, "server.host_up": False},
            "It may pass once it is unlocked or its compute service "
            "answers. Retry in 30 seconds.",
        ),
        (
            "server.vm_state:stopped and server.locked:false and"
            " server.host_up:true",
            {"server.locked": True, "server.host_up": False},
            "It may pass once vm_state is stopped and it is unlocked and its "
            "compute service answers.",
        ),
        (
            "not server.host_up:false and not server.migration:evacuation",
            {
                "server.host_up": False,
                "server.migration": frozenset({"evacuation"}),
            },
            "It may pass once its compute service answers and it is not "
            "being moved. Retry in 30 seconds.",
        ),
        (
            # Nobody is told how many servers of the cloud are stuck.
            "server.host_up:true and cloud.stuck:<5",
            {"server.host_up": False, "cloud.stuck": 9},
            "its compute service does not answer. Retry in 30 seconds.",
        ),
        (
            "server.host_up:true or cloud.stuck:<5",
            {"server.host_up": False, "cloud.stuck": 9},
            "It may pass once its compute service answers. Retry in 30 "
            "seconds.",
        ),
        (
            "not server.running_age:<1h",
            {"server.running_age": Age(5)},
            "while it has been busy for 5 seconds. It may pass once nothing "
            "runs on it or 59 minutes more have passed. Retry in 30 seconds.",
        ),
        (
            "server.running:none",
            {"server.running": frozenset({"attach_volume"})},
            "It may pass once nothing runs on it. Retry in 30 seconds.",
        ),
    ],
)
def test_what_it_takes(rule: str, facts: Any, wanted: str) -> None:
    assert told(rule, facts).endswith(wanted)


def test_details_of_what_it_takes_are_whole() -> None:
    facts = {
        "server.locked": True,
        "server.host_up": False,
        "cloud.stuck": 9,
    }
    found = {
        rule: [
            (lift["fact"], lift["together"])
            for lift in sentence.details(
                decided(rule, facts), Circumstances(), ()
            )["lifts"]
        ]
        for rule in (
            "server.locked:false and server.host_up:true",
            "server.locked:false or server.host_up:true",
            "server.locked:false and cloud.stuck:<5",
            "server.locked:false or cloud.stuck:<5",
        )
    }
    assert list(found.values()) == [
        [("locked", True), ("host_up", True)],
        [("locked", False), ("host_up", False)],
        [],
        [("locked", False)],
    ]


@pytest.mark.parametrize(
    ("rule", "facts", "said"),
    [
        ("server.vm_state:stopped", {}, True),
        ("not rule:busy", {"server.task_state": "pausing"}, True),
        ("server.power_state:shutdown", {}, False),
        ("server.state_age:>=2h", {}, True),
        (
            "not server.locked:true and server.vm_state:stopped",
            {"server.locked": True},
            True,
        ),
        ("not server.locked:true", {"server.locked": True}, False),
        ("server.host_up:true", {"server.host_up": False}, False),
        (
            "server.running:none",
            {"server.running": frozenset({"attach_volume"})},
            False,
        ),
        ("not server.running_age:<1h", {"server.running_age": Age(5)}, False),
        (
            # Of two reasons the age is not the one that is told.
            "server.host_up:true and server.state_age:>=2h",
            {"server.host_up": False},
            False,
        ),
        ("server.host:other", {}, False),
    ],
)
def test_since_when_it_is_so(rule: str, facts: Any, said: bool) -> None:
    """What is told of the state's beginning is about the reason given."""
    around = Circumstances(3456000.0, "create", REQUEST)
    text = told(rule, facts, circumstances=around)
    assert ("In this state for 40 days, by action 'create'" in text) is said


def test_reason_of_a_lock() -> None:
    text = told(
        "not server.locked:true",
        {"server.locked": True},
        operation="pause",
        circumstances=Circumstances(locked_reason="being\n moved by \x07us"),
        possible=("unlock",),
    )
    assert text == (
        f"Cannot 'pause' instance {ID} while it is locked (being moved by "
        "us). It may pass once it is unlocked. Possible now: unlock."
    )


def test_long_reasons_are_cut() -> None:
    text = told(
        "not server.locked:true",
        {"server.locked": True},
        circumstances=Circumstances(
            5000.0, "lock", REQUEST, locked_reason="x" * 255
        ),
        possible=("unlock", "delete"),
    )
    assert len(text) <= sentence.LIMIT
    assert "x" * 77 + "...)" in text
    assert "Possible now: unlock, DELETE." in text


def test_what_hosts_are_called_is_not_told() -> None:
    rule = (
        "not (server.host:secret-host or server.aggregate:secret-group or"
        " server.az:secret-zone or server.vm_state:active)"
    )
    text = told(
        rule,
        {
            "server.aggregate": frozenset({"secret-group"}),
            "server.az": "secret-zone",
        },
    )
    assert "secret" not in text
    assert "vm_state active" in text


def test_undecided() -> None:
    decision = decide(
        rules('"server:stop": "server.vm_state:active"'),
        "stop",
        {},
        refuse_unknown=True,
    )
    assert sentence.tell(decision, ID, Circumstances(1.0, "x"), ()) == (
        f"Cannot 'stop' instance {ID} while its state cannot be read. "
        "Retry in 30 seconds."
    )


def test_brake() -> None:
    decision = decide(rules('"server:delete:brake": "@"'), "delete", {})
    text = sentence.tell(decision, ID, Circumstances(), ())
    assert text.startswith(
        f"Cannot 'delete' instance {ID} now: too many such requests."
    )
    assert sentence.code(decision) == "too_many"


def test_quarantine_is_not_named() -> None:
    decision = decide(rules('"server:delete:quarantine": "@"'), "delete", {})
    text = sentence.tell(decision, ID, Circumstances(), ())
    assert "quarantine" not in text


@pytest.mark.parametrize(
    ("rule", "facts", "code"),
    [
        ("not rule:busy", {"server.task_state": "pausing"}, "busy"),
        ("server.vm_state:stopped", {}, "wrong_state"),
        ("not server.locked:true", {"server.locked": True}, "locked"),
        ("server.launched:true", {"server.launched": False}, "never_launched"),
        ("not server.host_up:false", {"server.host_up": False}, "host_down"),
        ("not server.cell_up:false", {"server.cell_up": False}, "cell_down"),
        ("server.state_age:>=2h", {}, "age"),
        ("server.host:other", {}, "policy"),
        ("!", {}, "policy"),
        (
            "not server.host_up:false and not rule:busy",
            {"server.host_up": False, "server.task_state": "pausing"},
            "host_down",
        ),
    ],
)
def test_codes(rule: str, facts: Any, code: str) -> None:
    assert sentence.code(decided(rule, facts)) == code
    assert code in sentence.CODES


def test_details_tell_no_more_than_the_sentence() -> None:
    decision = decided(
        "server.host:other or server.vm_state:stopped or"
        " server.state_age:>=2h",
        {"server.state_age": Age(61.4)},
    )
    found = sentence.details(
        decision, Circumstances(61.4, "start", REQUEST), ("delete",)
    )
    lifts = found.pop("lifts")
    assert found == {
        "code": "wrong_state",
        "decision": "",
        "rule": "server:rebuild",
        "facts": {"vm_state": "active", "state_age": 61},
        "possible": ["delete"],
        "retry_after": 7139,
        "since": 61,
        "action": "start",
        "request_id": REQUEST,
    }
    assert {lift["fact"] for lift in lifts} == {"vm_state", "state_age"}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 seconds"),
        (1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7199, "119 minutes"),
        (7200, "2 hours"),
        (172800, "2 days"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert phrases.duration(seconds) == text


@pytest.mark.parametrize("end", ["", ".", "!", "?"])
@pytest.mark.parametrize("length", [270, 297, 298, 299, 300, 340, 5000])
def test_a_long_refusal_of_nova_s_is_not_cut(length: int, end: str) -> None:
    message = "y" * (length - len(end)) + end
    found = sentence.extend(message, Circumstances(), (), 30)
    fits = length + len(". Retry in 30 seconds.") - bool(end) <= sentence.LIMIT
    added = f"{'' if end else '.'} Retry in 30 seconds." if fits else ""
    assert found == message + added
