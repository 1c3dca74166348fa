# SPDX-License-Identifier: Apache-2.0
"""What is offered instead of what was refused."""

from __future__ import annotations

from typing import Any

import pytest

from state_policy.engine import possible
from state_policy.engine.operations import OPERATIONS
from tests.unit.wsgi.rules import FACTS, rules

EVERYTHING = frozenset(OPERATIONS)
#: As Nova has it for a server that is in error and was launched.
IN_ERROR = frozenset({"delete", "force_delete", "reboot_hard", "rebuild"})


DELETING = {"server.task_state": "deleting", "server.host_up": True}


def offered(
    text: str = "",
    facts: Any = None,
    native: Any = EVERYTHING,
    admin: bool = False,
) -> list[str]:
    """Return what is offered for a server that is active, if not said."""
    known = {**FACTS, **(facts or {})}
    return list(possible.offers(rules(text), known, native, admin))


def test_ways_out_come_first() -> None:
    assert offered(native=IN_ERROR) == ["reboot_hard", "rebuild", "delete"]


def test_force_delete_is_for_the_soft_deleted() -> None:
    gone = {"server.vm_state": "soft-delete"}
    assert "force_delete" in offered(facts=gone)
    assert "force_delete" not in offered()


def test_rules_count() -> None:
    text = '"server:rebuild": "!"\n"server:delete": "server.locked:true"'
    assert offered(text, native=IN_ERROR) == ["reboot_hard"]


def test_what_the_rules_leave_open_is_not_offered() -> None:
    text = '"server:rebuild": "server.az:here"'
    assert "rebuild" not in offered(text, native=IN_ERROR)


def test_host_down_leaves_what_needs_no_host() -> None:
    down = {"server.host_up": False}
    assert offered(facts=down) == ["confirm_resize", "delete"]
    assert offered(facts=down, native=IN_ERROR) == ["delete"]


def test_lock_leaves_unlock_but_not_to_administrators() -> None:
    locked = {"server.locked": True}
    assert offered(facts=locked) == ["unlock", "create_image"]
    assert "rebuild" in offered(facts=locked, admin=True)
    assert "unlock" not in offered()


@pytest.mark.parametrize(
    ("facts", "native"),
    [({}, None), ({"server.cell_up": False}, EVERYTHING)],
)
def test_nothing_is_offered_in_the_dark(facts: Any, native: Any) -> None:
    assert offered(facts=facts, native=native) == []


def test_needs_are_those_of_the_offered() -> None:
    text = '"server:rebuild": "server.az:here"\n"server:lock": "server.tag:x"'
    needs = possible.needs(rules(text))
    assert "server.az" in needs and "server.tag" not in needs
    assert needs >= possible.FACTS


def test_offers_are_operations() -> None:
    assert set(possible.OFFERED) <= EVERYTHING
    assert possible.ON_HOST <= EVERYTHING and possible.OFF_HOST <= EVERYTHING
    assert not possible.ON_HOST & possible.OFF_HOST


@pytest.mark.parametrize(
    ("facts", "native", "name", "expected"),
    [
        ({}, EVERYTHING, "stop", None),
        ({"server.cell_up": False}, None, "unlock", "cell_down"),
        ({"server.cell_up": False}, EVERYTHING, "delete", "cell_down"),
        ({}, None, "stop", "unread"),
        ({"server.locked": True}, None, "stop", "locked"),
        ({"server.locked": True}, EVERYTHING, "create_image", None),
        ({}, IN_ERROR, "stop", "state"),
        ({"server.host_up": False}, IN_ERROR, "stop", "state"),
        ({"server.host_up": False}, EVERYTHING, "stop", "host_down"),
        ({"server.host_up": False}, EVERYTHING, "update", None),
        ({"server.host_up": False}, EVERYTHING, "evacuate", None),
        ({"server.host_up": True}, EVERYTHING, "evacuate", "host_up"),
        ({"server.host_up": None}, EVERYTHING, "stop", None),
        # Nova takes these deletes, and does nothing.
        (DELETING, EVERYTHING, "delete", "deleting"),
        (DELETING, EVERYTHING, "force_delete", "deleting"),
        (DELETING, EVERYTHING, "stop", None),
        (
            {**DELETING, "server.task_state": "soft-deleting"},
            EVERYTHING,
            "delete",
            "deleting",
        ),
        # These it carries out by itself.
        ({**DELETING, "server.host_up": False}, EVERYTHING, "delete", None),
        ({**DELETING, "server.host_up": None}, EVERYTHING, "delete", None),
        ({"server.disable_terminate": True}, EVERYTHING, "delete", "kept"),
        ({"server.disable_terminate": True}, EVERYTHING, "stop", None),
    ],
)
def test_obstacles(facts: Any, native: Any, name: str, expected: Any) -> None:
    known = {**FACTS, **facts}
    assert possible.obstacle(name, known, native, False) == expected


def test_a_delete_under_way_is_offered_where_a_rule_acts_on_it() -> None:
    assert "delete" not in offered(facts=DELETING)
    text = '"server:delete:quarantine": "rule:deleting"'
    assert "delete" in offered(text, facts=DELETING)
    # The quarantine spares what Nova's flag keeps.
    kept = {**DELETING, "server.disable_terminate": True}
    assert "delete" not in offered(text, facts=kept)
    text = '"server:delete:quarantine": "rule:building"'
    assert "delete" not in offered(text, facts=DELETING)


def test_needs_are_those_of_what_is_done_in_nova_s_place() -> None:
    text = '"server:delete:quarantine": "server.state_age:>=15m"'
    for needs in (possible.needs, possible.needs_beside):
        assert "server.state_age" in needs(rules(text))
        assert "server.state_age" not in needs(rules(""))


@pytest.mark.parametrize(
    ("vm_state", "task_state", "name", "expected"),
    [
        # Nova takes it once the snapshot is over.
        ("active", "image_uploading", "pause", True),
        # It refuses this without the snapshot, too.
        ("active", "image_uploading", "unpause", False),
        # Nobody knows what the task makes of the server.
        ("active", "powering-off", "unpause", True),
        ("building", None, "pause", True),
        ("stopped", None, "pause", False),
    ],
)
def test_states_that_pass(
    vm_state: str, task_state: Any, name: str, expected: bool
) -> None:
    def allowed(known: Any) -> frozenset[str]:
        if known["server.task_state"] is not None:
            return frozenset()
        active = known["server.vm_state"] == "active"
        return frozenset({"pause"} if active else {"start"})

    known = {
        **FACTS,
        "server.vm_state": vm_state,
        "server.task_state": task_state,
    }
    assert possible.passes(name, known, allowed) is expected
    del known["server.task_state"]
    assert possible.passes(name, known, allowed) is False


def test_nothing_with_an_obstacle_is_offered() -> None:
    for key, value in (
        ("server.host_up", False),
        ("server.locked", True),
        ("server.cell_up", False),
    ):
        known = {**FACTS, key: value}
        for name in offered(facts={key: value}):
            found = possible.obstacle(name, known, EVERYTHING, False)
            assert found is None, (key, name)
