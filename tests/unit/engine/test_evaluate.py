# SPDX-License-Identifier: Apache-2.0
"""Decisions, with the rules of the design's examples."""

import pytest

from state_policy.engine.decision import Blocker, Lift, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Age
from state_policy.engine.literal import Change
from state_policy.rules import load

DESIGN = """\
"server:delete:quarantine": "server.task_state:spawning,deleting and \
rule:building and server.state_age:>=60m"
"server:delete": "not (rule:snapshotting and server.state_age:<30m)"
"server:delete:wait": "rule:snapshotting"
"server:delete:escalate": "rule:deleting and ((not server.hypervisor:ironic \
and server.state_age:>=15m) or server.state_age:>=4h)"
"server:create_image": "not rule:busy"
"server:create_image:wait": "rule:snapshotting"
"server:confirm_resize": "server.vm_state:resized"
"server:confirm_resize:wait": "rule:resizing"
"class:power": "not server.host_up:false and not server.migration:evacuation"
"class:any": "not server.cell_up:false"
"server:delete:brake": "project.deletes:10m:>50"
"server:pause:evidence": "server.locked:false"
"""

FACTS = {
    "server.vm_state": "active",
    "server.task_state": None,
    "server.state_age": Age(90),
    "server.host_up": True,
    "server.cell_up": True,
    "server.migration": None,
    "server.hypervisor": "QEMU",
    "server.locked": False,
    "project.deletes:10m": 0,
}


@pytest.fixture
def design(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(DESIGN)
    return load([path])


def asked(rules, operation, without=frozenset(), **changed):
    facts = {
        **FACTS,
        **{f"server.{key}": value for key, value in changed.items()},
    }
    if "deletes" in changed:
        facts["project.deletes:10m"] = changed["deletes"]
    return decide(rules, operation, facts, without=without)


@pytest.mark.parametrize(
    ("operation", "changed", "wanted"),
    [
        ("delete", {}, ("allow", None, None)),
        (
            "delete",
            {"task_state": "image_uploading"},
            # A passing fact alone lifts, and the rule says wait.
            ("wait", 409, 30),
        ),
        (
            "delete",
            {"task_state": "image_uploading", "state_age": Age(1800)},
            ("allow", None, None),
        ),
        (
            "delete",
            {
                "vm_state": "building",
                "task_state": "spawning",
                "state_age": Age(3600),
            },
            ("quarantine", None, None),
        ),
        (
            "delete",
            {
                "vm_state": "building",
                "task_state": "spawning",
                "state_age": Age(3599),
            },
            ("allow", None, None),
        ),
        (
            "delete",
            {"task_state": "deleting", "state_age": Age(900)},
            ("escalate", None, None),
        ),
        (
            "delete",
            {
                "task_state": "deleting",
                "state_age": Age(900),
                "hypervisor": "ironic",
            },
            ("allow", None, None),
        ),
        ("delete", {"deletes": 51}, ("brake", 429, 30)),
        # Refused comes first.
        (
            "delete",
            {"deletes": 51, "task_state": "image_backup"},
            ("wait", 409, 30),
        ),
        ("create_image", {"task_state": "image_backup"}, ("wait", 409, 30)),
        ("create_image", {"task_state": "rebooting"}, ("deny", 409, 30)),
        # Only another vm_state lifts, and that is the user's to change.
        ("confirm_resize", {}, ("deny", 409, None)),
        # While a task runs the vm_state is passing.
        ("confirm_resize", {"task_state": "resize_finish"}, ("wait", 409, 30)),
        ("confirm_resize", {"task_state": "rebooting"}, ("deny", 409, 30)),
        ("stop", {"host_up": False}, ("deny", 409, 30)),
        ("stop", {"host_up": None}, ("allow", None, None)),
        (
            "stop",
            {"migration": frozenset({"evacuation"})},
            ("deny", 409, 30),
        ),
        # class:power is stated, so that class:any does not hold for it.
        ("stop", {"cell_up": False}, ("allow", None, None)),
        ("lock", {"cell_up": False}, ("deny", 409, 30)),
        ("show", {"cell_up": False}, ("allow", None, None)),
        # force_delete follows delete, suffix by suffix.
        ("force_delete", {"deletes": 51}, ("brake", 429, 30)),
    ],
)
def test_verdict(design, operation, changed, wanted):
    found = asked(design, operation, **changed)
    assert (found.verdict.value, found.code, found.retry_after) == wanted
    assert found.operation == operation
    assert not found.undecided


def test_the_rules_that_made_it(design):
    found = asked(design, "force_delete", task_state="image_backup")
    assert found.rule == "server:force_delete:wait"
    assert found.rules == (
        "server:force_delete:wait",
        "server:delete:wait",
        "snapshotting",
        "server:force_delete",
        "server:delete",
    )
    assert found.facts == {
        "server.task_state": "image_backup",
        "server.state_age": Age(90),
    }


def test_what_blocks_and_what_lifts(design):
    found = asked(design, "create_image", task_state="rebooting")
    assert found.blocking == (
        Blocker("server.task_state", "none", "server.task_state", False),
    )
    assert found.lifts == (Lift("server.task_state", Change.PASSING, (None,)),)


def test_excluded_verdicts_are_passed_over(design):
    changed = {
        "vm_state": "building",
        "task_state": "deleting",
        "state_age": Age(7200),
    }
    names = [Verdict.QUARANTINE, Verdict.ESCALATE, Verdict.ALLOW]
    for number, wanted in enumerate(names):
        found = asked(
            design, "delete", without=frozenset(names[:number]), **changed
        )
        assert found.verdict is wanted


def test_evidence(design):
    assert asked(design, "pause").evidence
    assert not asked(design, "pause", locked=True).evidence
    assert not asked(design, "stop").evidence


def test_undecided_passes_or_is_refused(design):
    found = decide(design, "stop", {"server.host_up": True})
    assert (found.verdict, found.undecided) == (Verdict.ALLOW, True)
    found = decide(design, "stop", {}, refuse_unknown=True, retry_after=7)
    assert (found.verdict, found.code, found.retry_after) == (
        Verdict.DENY,
        503,
        7,
    )
    # What is known may decide it all the same.
    found = decide(design, "stop", {"server.host_up": False})
    assert (found.verdict, found.code) == (Verdict.DENY, 409)


def test_undecided_never_acts(design):
    facts = dict(FACTS)
    del facts["project.deletes:10m"], facts["server.state_age"]
    facts["server.task_state"] = "deleting"
    found = decide(design, "delete", facts)
    assert (found.verdict, found.undecided) == (Verdict.ALLOW, False)


@pytest.mark.parametrize(
    ("suffix", "refused"),
    [
        ("wait", True),
        ("brake", False),
        ("quarantine", False),
        ("escalate", False),
        ("evidence", False),
    ],
)
def test_no_suffix_acts_undecided(tmp_path, suffix, refused):
    path = tmp_path / "rules.yaml"
    path.write_text(
        f'"server:delete": "server.host_up:true"\n'
        f'"server:delete:{suffix}": "server.locked:false"'
    )
    rules = load([path])
    facts = {"server.host_up": not refused}
    found = decide(rules, "delete", facts)
    assert found.verdict is (Verdict.DENY if refused else Verdict.ALLOW)
    assert not found.evidence
    found = decide(rules, "delete", {**facts, "server.locked": False})
    assert found.verdict.value == suffix or found.evidence


def test_identity(design):
    found = decide(design, "stop", FACTS, id="d1")
    assert (found.id, found.revision) == ("d1", design.revision)
