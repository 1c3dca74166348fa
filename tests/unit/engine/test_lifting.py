# SPDX-License-Identifier: Apache-2.0
"""What lifts a refusal, when, and with which code."""

import pytest

from state_policy.engine.changes import READ_WITH
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Age
from state_policy.engine.literal import Change
from state_policy.rules import load


@pytest.fixture
def refused(tmp_path):
    def refused(text, **facts):
        path = tmp_path / "rules.yaml"
        path.write_text(f'"server:stop": "{text}"')
        given = {
            key.replace("__", ".").replace("server_", "server.", 1): value
            for key, value in facts.items()
        }
        found = decide(load([path]), "stop", given)
        assert found.verdict.value == "deny"
        lifts = {lift.fact: lift.values for lift in found.lifts}
        return found.code, found.retry_after, lifts

    return refused


def test_only_an_age_lifts_the_exact_time(refused):
    assert refused("server.age:>=10m", server_age=Age(590)) == (
        409,
        10,
        {"server.age": (Age(600),)},
    )
    assert refused("server.age:>10m", server_age=Age(590))[1] == 11
    # Rounded up: a request that comes in time is not sent away again.
    assert refused("server.age:>=10m", server_age=Age(589.2))[1] == 11
    assert refused("server.age:>=10m", server_age=Age(599.9))[1] == 1


def test_the_nearest_of_two_thresholds(refused):
    text = "server.age:>=1h or (server.age:>=10m and server.locked:false)"
    assert refused(text, server_age=Age(60), server_locked=False)[1] == 540
    assert refused(text, server_age=Age(60), server_locked=True)[1] == 3540


def test_two_ages_grow_together(refused):
    text = "server.age:>=10m and server.running_age:>=10m"
    found = refused(text, server_age=Age(500), server_running_age=Age(300))
    assert found[:2] == (409, 300)
    assert set(found[2]) == {"server.age", "server.running_age"}


def test_an_age_too_great_never_lifts(refused):
    assert refused("server.age:<10m", server_age=Age(600)) == (403, None, {})


def test_the_age_of_a_state_starts_anew_with_it(refused):
    text = "server.state_age:<10m"
    age = Age(600)
    assert refused(text, server_state_age=age)[0] == 403
    text = "server.state_age:<10m and server.vm_state:active"
    found = refused(
        text,
        server_state_age=age,
        server_vm_state="stopped",
        server_task_state=None,
    )
    assert found[:2] == (409, None)


def test_an_action_that_ends(refused):
    # No age would lift it, but the action may end.
    found = refused(
        "not server.running_age:>=10m", server_running_age=Age(1200)
    )
    assert found == (409, 30, {"server.running_age": (None,)})


@pytest.mark.parametrize("seconds", [5, 3590])
def test_an_action_that_ends_before_its_age_lifts(refused, seconds):
    # Both lift it, and an action that ends does so at any time.
    found = refused(
        "not server.running_age:<1h", server_running_age=Age(seconds)
    )
    assert found == (409, 30, {"server.running_age": (None, Age(3600))})
    # Where there must be one, only time lifts.
    found = refused("server.running_age:>=1h", server_running_age=Age(3500))
    assert found == (409, 100, {"server.running_age": (Age(3600),)})


def test_the_end_of_an_action_and_of_a_task(refused):
    found = refused(
        "server.task_state:none and not server.running_age:<1h",
        server_task_state="pausing",
        server_running_age=Age(5),
    )
    assert found[:2] == (409, 30)


def test_what_lifts_only_together_says_so(tmp_path):
    path = tmp_path / "rules.yaml"
    facts = {"server.host_up": False, "server.locked": True}
    for word, together in (("and", True), ("or", False)):
        path.write_text(
            f'"server:stop": "server.host_up:true {word} server.locked:false"'
        )
        lifts = decide(load([path]), "stop", facts).lifts
        assert [lift.together for lift in lifts] == [together] * 2


def test_fixed_facts_do_not_lift(refused):
    assert refused("not server.tag:keep", server_tag=frozenset({"keep"})) == (
        403,
        None,
        {},
    )
    assert refused(
        "server.locked:false and not server.tag:keep",
        server_tag=frozenset({"keep"}),
        server_locked=True,
    ) == (403, None, {})


def test_movable_facts_lift_without_retry_after(refused):
    found = refused("server.locked:false", server_locked=True)
    assert found == (409, None, {"server.locked": (False,)})


def test_passing_and_movable_together(refused):
    found = refused(
        "server.locked:false and server.host_up:true",
        server_locked=True,
        server_host_up=False,
    )
    assert found[:2] == (409, None)
    assert found[2] == {"server.locked": (False,), "server.host_up": (True,)}


def test_a_fact_that_was_not_read_may_lift(refused):
    text = "server.task_state:none and server.host_up:true"
    found = refused(text, server_task_state="rebooting")
    assert found[:2] == (409, 30)


def test_any_other_value_is_tried_even_if_another_condition_names_it(refused):
    # What each condition takes for "another" one, the next one names.
    text = (
        "not server.task_state:none,spawning"
        " and not server.task_state:scheduling"
        " and not server.task_state:block_device_mapping"
    )
    code, _, lifts = refused(text, server_task_state="spawning")
    assert code == 409
    ((value,),) = lifts.values()
    assert value == "networking"


def test_every_value_named_leaves_no_other(refused, tmp_path):
    text = (
        "not server.power_state:pending,running,paused and not"
        " server.power_state:shutdown,crashed,suspended"
    )
    assert refused(text, server_power_state="running") == (403, None, {})


def test_too_many_combinations_are_taken_for_liftable(refused):
    # Never true; but that needs more tries than are made.
    names = ["building", "active", "paused", "error"]
    parts = [
        f"(server.vm_state:{name} or server.task_state:{task} or"
        f" server.migration:{kind} or server.running:{action} or"
        f" server.power_state:{power} or cloud.stuck:>{number})"
        for name, task, kind, action, power, number in zip(
            names,
            ("spawning", "deleting", "rebooting", "pausing"),
            ("evacuation", "resize", "migration", "any"),
            ("create", "delete", "stop", "start"),
            ("running", "paused", "crashed", "shutdown"),
            (1, 2, 3, 4),
            strict=True,
        )
    ]
    code, _, _ = refused(
        " and ".join([*parts, "server.tag:keep", "not server.tag:keep"]),
        server_vm_state="stopped",
        server_task_state=None,
        server_migration=None,
        server_running=None,
        server_power_state="pending",
        **{"cloud__stuck": 0},
    )
    assert code == 409


def test_vm_state_passes_while_a_task_runs(refused):
    text = "server.vm_state:stopped"
    busy = refused(
        text, server_vm_state="active", server_task_state="powering-off"
    )
    assert busy[:2] == (409, 30)
    idle = refused(text, server_vm_state="active", server_task_state=None)
    assert idle[:2] == (409, None)


#: Where a server is; a task that leaves it there, and one that does not.
IDLE = {"server_vm_state": "active", "server_task_state": None}
SNAPSHOT = {**IDLE, "server_task_state": "image_uploading"}
STOPPING = {**IDLE, "server_task_state": "powering-off"}
RESIZING = {**IDLE, "server_task_state": "resize_prep"}
SPAWNING = {"server_vm_state": "building", "server_task_state": "spawning"}
#: As nova-compute has it for a moment when it begins a build.
BEGUN = {"server_vm_state": "building", "server_task_state": None}
OFFLOADED = {
    "server_vm_state": "shelved_offloaded",
    "server_task_state": None,
}
UNSHELVING = {**OFFLOADED, "server_task_state": "unshelving"}
IN_CELL0 = {"server_vm_state": "error", "server_task_state": None}

WAIT, ASK, NEVER = (409, 30), (409, None), (403, None)


@pytest.mark.parametrize(
    ("text", "value", "state", "expected"),
    [
        ("server.launched:true", False, SPAWNING, WAIT),
        ("server.launched:true", False, BEGUN, WAIT),
        ("server.launched:true", False, IN_CELL0, NEVER),
        # Who was up once has been for ever.
        ("server.launched:false", True, STOPPING, NEVER),
        ("not server.host:none", None, SPAWNING, WAIT),
        ("not server.host:none", None, UNSHELVING, WAIT),
        ("not server.host:none", None, OFFLOADED, ASK),
        ("not server.host:none", None, IN_CELL0, NEVER),
        ("not server.host:a", "a", RESIZING, WAIT),
        ("not server.host:a", "a", SNAPSHOT, NEVER),
        ("not server.host:a", "a", IDLE, NEVER),
        ("server.hypervisor:QEMU", None, BEGUN, WAIT),
        ("server.az:a", "b", SPAWNING, WAIT),
        ("server.aggregate:racks", None, SPAWNING, WAIT),
        ("server.host_up:true", None, SPAWNING, WAIT),
        ("server.host_up:true", None, OFFLOADED, ASK),
        ("server.host_up:true", None, IN_CELL0, NEVER),
        ("server.host_up:true", False, IDLE, WAIT),
        ("server.flavor:small", "large", RESIZING, WAIT),
        ("server.flavor:small", "large", STOPPING, NEVER),
        ("server.volumes:any", None, SPAWNING, WAIT),
        ("server.volumes:any", None, IDLE, NEVER),
        ("server.power_state:shutdown", "running", STOPPING, WAIT),
        ("server.power_state:shutdown", "running", IDLE, ASK),
        ("server.image:none", "i", SPAWNING, NEVER),
    ],
)
def test_what_a_build_or_a_task_changes(refused, text, value, state, expected):
    fact = next(w for w in text.split() if w != "not").split(":")[0]
    given = {fact.replace(".", "_", 1): value, **state}
    assert refused(text, **given)[:2] == expected


@pytest.mark.parametrize(
    ("state", "expected"),
    [(SNAPSHOT, ASK), (STOPPING, WAIT), (BEGUN, WAIT), (IDLE, ASK)],
)
def test_a_task_that_keeps_the_vm_state(refused, state, expected):
    assert refused("server.vm_state:paused", **state)[:2] == expected


@pytest.mark.parametrize("fact", sorted(READ_WITH))
def test_what_says_how_a_fact_changes_is_read_with_it(tmp_path, fact):
    match = "running" if fact.endswith("power_state") else "true"
    match = "active" if fact.endswith("vm_state") else match
    if fact in ("server.volumes", "server.host", "server.aggregate"):
        match = "none"
    path = tmp_path / "rules.yaml"
    path.write_text(f'"server:stop": "{fact}:{match}"')
    needs = load([path]).operations["stop"].may.needs
    assert needs == {fact, "server.vm_state", "server.task_state"}


@pytest.mark.parametrize(
    "seconds", [float("nan"), float("inf"), float("-inf"), "soon", None]
)
def test_odd_ages_do_not_make_it_raise(refused, seconds):
    found = refused(
        "server.age:>=10m and server.locked:false and server.tag:x",
        server_age=Age(seconds),
        server_locked=True,
        server_tag=None,
    )
    assert found == (403, None, {})


def test_how_a_fact_can_change_is_said(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(
        '"server:stop": "server.host_up:true or server.locked:true"'
    )
    facts = {"server.host_up": False, "server.locked": False}
    found = decide(load([path]), "stop", facts)
    assert {lift.fact: lift.change for lift in found.lifts} == {
        "server.host_up": Change.PASSING,
        "server.locked": Change.MOVABLE,
    }
