# SPDX-License-Identifier: Apache-2.0
"""What would change a decision."""

from state_policy.engine.analysis.neighbours import neighbours
from state_policy.engine.facts import Age

CALLER = {"roles": ["member"], "project_id": "p", "target": {}}


def near(rules, operation, **facts):
    given = {f"server.{key}": value for key, value in facts.items()}
    return {
        (str(found.label), *found.facts): list(found.facts.values())
        for found in neighbours(rules, operation, {**given, "caller": CALLER})
    }


def test_one_fact_at_a_time(rules):
    found = near(
        rules('"server:stop": "not (rule:snapshotting and role:member)"'),
        "stop",
        task_state="image_uploading",
    )
    assert found["allow", "caller:role:member"] == [("no",)]
    ((tasks,),) = (found["allow", "server.task_state"],)
    assert len(tasks) == 43 - 5
    assert tasks[0] == "none"


def test_two_where_one_is_not_enough(rules):
    found = near(
        rules('"server:stop": "server.locked:false and server.host_up:true"'),
        "stop",
        locked=True,
        host_up=False,
    )
    # Unlocked or up alone the stop is still refused; now it is a 409 anyway.
    assert found == {
        ("allow", "server.host_up", "server.locked"): [("true",), ("false",)]
    }


def test_an_age(rules):
    found = near(
        rules('"server:delete:quarantine": "server.state_age:>=60m"'),
        "delete",
        state_age=Age(60),
    )
    assert found == {("quarantine", "server.state_age"): [(">=60m",)]}


def test_a_tag_comes_or_goes(rules):
    made = rules('"server:stop": "not server.tag:a,b"')
    assert near(made, "stop", tag=frozenset({"a"})) == {
        ("allow", "server.tag:a"): [("no",)]
    }
    assert near(made, "stop", tag=None) == {
        ("deny 403", "server.tag:a"): [("yes",)],
        ("deny 403", "server.tag:b"): [("yes",)],
    }


def test_nothing_changes_a_rule_that_looks_at_nothing(rules):
    assert near(rules("{}"), "stop") == {}
