# SPDX-License-Identifier: Apache-2.0
"""Every kind: what it takes, what it refuses, what it is true for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from state_policy.engine import states
from state_policy.engine.facts import Age
from state_policy.engine.literal import Change
from state_policy.rules.kinds import BUILTIN
from state_policy.rules.kinds.contract import KindContract, violations

FIXED, MOVABLE, PASSING = Change.FIXED, Change.MOVABLE, Change.PASSING


@dataclass
class Case:
    """What is expected of one kind."""

    name: str
    change: Change
    good: Sequence[str]
    bad: Sequence[str]
    values: Sequence[Any]


AGES = (Age(0), Age(599.5), Age(600), Age(601), Age(10**6), Age(3, False))
AGE_GOOD = (">=10m", ">600s", "<=1h", "<7d", ">=0s")
AGE_BAD = ("10m", ">=10", ">=", ">=10w", ">=10M", "=10m", ">=1.5h", ">=-1m")
AGE_BAD += (">=10m,<5m", ">= 10m", ">=m", ">=9999999999s", ">=٣m", "none")
#: The id of a volume or an image.
VOLUME = "155d900f-4e14-4e4c-a73d-069cbf4541e6"

#: What looks like a word, a pattern or a comparison of another language.
OTHERS_BAD = (
    *("any", "ANY", "None", "NONE", "!a", "=a", ">a", "a*", "a|b", "a&&b"),
    "n" * 256,
)
NAMES_BAD = (",", "a,", ",a", "a%", "a%2", "a%zz", "'a'", '"a"', "a%00", "%ff")
FLAG_BAD = ("True", "yes", "1", "true,", "none", "")
COUNT_GOOD = (">=3", ">0", "<=50", "<10")
COUNT_BAD = ("3", ">=", ">=3m", "=3", ">=-1", ">=1e3", ">=3,<9", "none")

CASES = [
    Case(
        "server.vm_state",
        MOVABLE,
        ("building", "active,error", "shelved_offloaded", "soft%2Ddelete"),
        ("none", "bulding", "ACTIVE", "active,", "", "any", "scheduling"),
        states.VM_STATES,
    ),
    Case(
        "server.task_state",
        PASSING,
        ("none", "spawning,deleting", "none,image_uploading", "powering-off"),
        ("spawn", "None", "any", "building", "deleting,,spawning"),
        (None, *states.TASK_STATES),
    ),
    Case(
        "server.power_state",
        MOVABLE,
        ("running", "shutdown,crashed"),
        ("none", "4", "SHUTDOWN", "active"),
        states.POWER_STATES,
    ),
    Case("server.state_age", PASSING, AGE_GOOD, AGE_BAD, AGES),
    Case("server.age", PASSING, AGE_GOOD, AGE_BAD, AGES),
    Case(
        "server.running",
        PASSING,
        ("any", "none", "delete,create", "none,createImage"),
        ("deleting", "Create", "spawning", ""),
        (
            None,
            frozenset({"create"}),
            frozenset({"delete", "lock"}),
            frozenset({"stop"}),
            frozenset({"createImage"}),
        ),
    ),
    Case(
        "server.running_age",
        PASSING,
        (*AGE_GOOD, "none"),
        AGE_BAD[:-1],
        (*AGES, None),
    ),
    Case("server.attempts", PASSING, COUNT_GOOD, COUNT_BAD, (0, 1, 3, 10, 99)),
    Case("server.launched", FIXED, ("true", "false"), FLAG_BAD, (True, False)),
    Case(
        "server.disable_terminate",
        FIXED,
        ("true", "false"),
        FLAG_BAD,
        (True, False),
    ),
    Case("server.locked", MOVABLE, ("true", "false"), FLAG_BAD, (True, False)),
    Case(
        "server.host_up",
        PASSING,
        ("true", "false", "none", "false,none"),
        ("up", "down", "True"),
        (True, False, None),
    ),
    Case(
        "server.cell_up", PASSING, ("true", "false"), FLAG_BAD, (True, False)
    ),
    Case(
        "server.migration",
        PASSING,
        ("any", "none", "evacuation", "live-migration,resize"),
        ("evacuate", "live_migration"),
        (
            None,
            frozenset({"evacuation"}),
            frozenset({"live-migration"}),
            frozenset({"migration"}),
        ),
    ),
    Case(
        "server.hypervisor",
        FIXED,
        ("ironic", "QEMU,fake", "none", "VMware%20vCenter%20Server"),
        NAMES_BAD,
        ("ironic", "QEMU", "VMware vCenter Server", None, "other"),
    ),
    Case(
        "server.host",
        FIXED,
        ("c1.example.org", "none", "%61ny", "%4Eone", "fe80::1"),
        (*NAMES_BAD, *OTHERS_BAD),
        ("c1.example.org", None, "c2"),
    ),
    Case(
        "server.az",
        FIXED,
        ("nova", "none"),
        (*NAMES_BAD, *OTHERS_BAD, "nova:host"),
        ("nova", None, "b"),
    ),
    Case(
        "server.aggregate",
        FIXED,
        ("ssd", "1,2", "none", "any"),
        NAMES_BAD,
        (None, frozenset(), frozenset({"ssd", "1"}), frozenset({"hdd"})),
    ),
    Case(
        "server.flavor",
        FIXED,
        ("m1.small", "c%29a"),
        NAMES_BAD,
        ("m1.small", "c)a", "big", frozenset({"1", "m1.small"})),
    ),
    Case(
        "server.image",
        FIXED,
        ("70a599e0-31e7-49b7-b260-868f441e862b", "none"),
        (*NAMES_BAD, "any", "cirros", VOLUME.replace("-", "")),
        ("70a599e0-31e7-49b7-b260-868f441e862b", None, "x"),
    ),
    Case(
        "server.volumes",
        FIXED,
        ("none", "any", f"{VOLUME},70a599e0-31e7-49b7-b260-868f441e862b"),
        (*NAMES_BAD, "root", VOLUME.upper()),
        (None, frozenset({VOLUME, "v3"}), frozenset({"v3"})),
    ),
    Case(
        "server.volume_backed",
        FIXED,
        ("true", "false"),
        FLAG_BAD,
        (True, False),
    ),
    Case(
        "server.metadata",
        FIXED,
        ("role=db", "a=b=c,d=", "none", "any", "a%20b=c%2Cd"),
        (
            *("role", "=db", "role:db", "a=b,c", "env!=test", "a>=5", "a==b"),
            *("a=b*", f"{'k' * 256}=v", f"k={'v' * 256}", "a%2Fb=c"),
        ),
        (
            None,
            frozenset({"role=db"}),
            frozenset({"d=", "x=y"}),
            frozenset({"a b=c,d"}),
            frozenset({"x=y"}),
        ),
    ),
    Case(
        "server.tag",
        FIXED,
        ("keep", "keep,prod", "none", "%6eone", "%2A", "t" * 60),
        (*NAMES_BAD, "a/b", "a%2Cb", "a%2Fb", "t" * 61, "ANY", "None"),
        (
            None,
            frozenset({"keep", "x"}),
            frozenset({"none"}),
            frozenset({"x"}),
        ),
    ),
    Case(
        "project.deletes",
        PASSING,
        ("10m:>50", "1h:<=5", "90s:>=1"),
        (">50", "10m", "10m>50", "10:>50", "0s:>50", "10m:>=1m", "10m:"),
        (0, 1, 5, 6, 50, 51),
    ),
    Case("cloud.stuck", PASSING, COUNT_GOOD, COUNT_BAD, (0, 1, 3, 10, 99)),
    Case("quarantine.age", PASSING, AGE_GOOD, AGE_BAD, AGES),
    Case(
        "quarantine.completed",
        PASSING,
        ("true", "false"),
        FLAG_BAD,
        (True, False),
    ),
]


def literal(text: str):
    kind, _, match = text.partition(":")
    return BUILTIN[kind](kind, match).literal


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_contract(case):
    contract = type(
        "Contract",
        (KindContract,),
        {
            "name": case.name,
            "kind": BUILTIN[case.name],
            "good": case.good,
            "bad": case.bad,
            "values": case.values,
        },
    )
    assert violations(contract) == []
    assert literal(f"{case.name}:{case.good[0]}").change is case.change


def test_every_kind_has_a_case():
    assert sorted(case.name for case in CASES) == sorted(BUILTIN)


YES, NO, OPEN = True, False, None


@pytest.mark.parametrize(
    ("text", "value", "wanted"),
    [
        ("server.vm_state:building,error", "error", YES),
        ("server.vm_state:building,error", "active", NO),
        ("server.task_state:none", None, YES),
        ("server.task_state:none", "deleting", NO),
        ("server.task_state:deleting", None, NO),
        ("server.state_age:>=10m", Age(600), YES),
        ("server.state_age:>=10m", Age(599.9), NO),
        ("server.state_age:>10m", Age(600), NO),
        ("server.state_age:<10m", Age(599.9), YES),
        ("server.state_age:<10m", Age(600), NO),
        ("server.state_age:<=10m", Age(600), YES),
        # A lower bound proves `at least`, never `less`.
        ("server.state_age:>=10m", Age(600, exact=False), YES),
        ("server.state_age:>=10m", Age(599, exact=False), OPEN),
        ("server.state_age:>10m", Age(600, exact=False), OPEN),
        ("server.state_age:>10m", Age(601, exact=False), YES),
        ("server.state_age:<10m", Age(5, exact=False), OPEN),
        ("server.state_age:<10m", Age(600, exact=False), NO),
        ("server.state_age:<=10m", Age(600, exact=False), OPEN),
        ("server.state_age:<=10m", Age(601, exact=False), NO),
        ("server.state_age:>=10m", 600, YES),
        ("server.state_age:>=10m", "600", OPEN),
        ("server.running_age:>=0s", None, NO),
        ("server.running_age:<10m", None, NO),
        ("server.running:any", frozenset({"stop"}), YES),
        ("server.running:any", None, NO),
        ("server.running:none", None, YES),
        ("server.running:none,stop", frozenset({"stop", "lock"}), YES),
        ("server.running:stop", frozenset({"start"}), NO),
        ("server.host_up:false", None, NO),
        ("server.host_up:none", None, YES),
        ("server.host_up:false,none", False, YES),
        ("server.locked:true", 1, OPEN),
        ("server.volumes:none", frozenset(), YES),
        ("server.volumes:none", None, YES),
        ("server.flavor:1", frozenset({"1", "tiny"}), YES),
        ("server.flavor:my%20flavor", "my flavor", YES),
        ("server.flavor:a%2Cb", "a,b", YES),
        ("server.metadata:k=v", frozenset({"k=w"}), NO),
        ("project.deletes:10m:>50", 51, YES),
        ("project.deletes:10m:>50", 50, NO),
        ("cloud.stuck:>=1", True, OPEN),
        ("server.hypervisor:none", None, YES),
        ("server.hypervisor:ironic", None, NO),
    ],
)
def test_value(text, value, wanted):
    assert literal(text).test(value) is wanted


def test_parameter_is_part_of_the_fact():
    found = literal("project.deletes:10m:>50")
    assert found.fact == "project.deletes:10m"
    assert found.samples == (50, 51)


def test_threshold_samples_are_on_both_sides():
    assert literal("server.age:>=10m").samples == (Age(599), Age(600))
    assert literal("server.age:<10m").samples == (Age(599), Age(600))
    assert literal("server.age:>10m").samples == (Age(600), Age(601))
    assert literal("server.age:<=10m").samples == (Age(600), Age(601))


def test_enumerated_kinds_know_their_whole_domain():
    assert set(literal("server.vm_state:error").domain) == set(
        states.VM_STATES
    )
    assert set(literal("server.task_state:none").domain) == {
        None,
        *states.TASK_STATES,
    }
