# SPDX-License-Identifier: Apache-2.0
"""Differences: the lines that people read and the cells behind them."""

import pytest

from state_policy.engine.analysis.compare import Comparison


@pytest.fixture
def compared(rules):
    def compared(old, new):
        return Comparison(rules(old, "old.yaml"), rules(new, "new.yaml"))

    return compared


def test_no_difference_however_it_is_written(compared):
    found = compared(
        '"server:stop": "not (rule:busy or server.age:<60m)"',
        '"server:stop": "server.task_state:none and server.age:>=1h"',
    )
    assert found.differences == ()
    assert list(found.lines()) == []


def test_the_line_of_the_documentation(compared):
    found = compared(
        "{}",
        '"server:delete": "not (rule:building and server.state_age:<60m '
        'and role:member)"',
    )
    assert list(found.lines()) == [
        "delete, force_delete in building/* with state_age <60m: allow -> "
        "deny 409 for member"
    ]
    assert [found.count(item) for item in found.differences] == [43, 43]


def test_ages_are_cut_at_the_thresholds_of_both(compared):
    found = compared(
        '"class:destroy": "server.age:>=30m"',
        '"class:destroy": "server.age:>=60m"',
    )
    assert list(found.lines()) == [
        "class:destroy in */* with age >=30m and <60m: allow -> deny 409"
    ]


def test_a_code_is_a_difference(compared):
    found = compared(
        '"server:stop": "not (rule:building and server.locked:true)"',
        '"server:stop": "not (rule:building and server.locked:true) '
        'and not server.tag:a"',
    )
    assert {(str(item.old), str(item.new)) for item in found.differences} == {
        ("allow", "deny 403"),
        ("deny 409", "deny 403"),
    }


def test_evidence_is_a_difference(compared):
    found = compared("{}", '"server:delete:evidence": "rule:building"')
    assert list(found.lines()) == [
        "delete, force_delete in building/*: allow -> allow with evidence"
    ]


def test_everyone_but(compared):
    found = compared("{}", '"server:stop": "role:admin"')
    assert list(found.lines()) == [
        "stop in */*: allow -> deny 403 for all but admin"
    ]


def test_parts_have_all_cells(compared):
    found = compared(
        '"class:any": "not server.host_up:false and not rule:busy"',
        '"class:power": "server.host_up:true or server.tag:a"\n'
        '"server:delete:quarantine": "rule:building and server.age:>1h"',
    )
    assert found.differences
    for item in found.differences:
        parts = list(found.parts(item))
        assert sum(part.cells for part in parts) == found.count(item)
        assert all(part.states for part in parts)


def test_what_is_not_there_is_said_apart(compared):
    found = compared(
        '"server:stop": "server.tag:a or server.tag:b or server.locked:true"',
        "{}",
    )
    assert list(found.lines()) == [
        "stop in */* with locked false and without tag:a or tag:b: "
        "deny 409 -> allow"
    ]
