# SPDX-License-Identifier: Apache-2.0
"""Accepted findings."""

import pytest

from state_policy.engine.analysis import acceptance
from state_policy.engine.analysis.finding import Finding

FOUND = Finding("SP004", "server:delete", "a.yaml:1", "leaves no way out")


def test_an_accepted_finding_has_its_reason():
    accepted, wrong = acceptance.read(
        "a.yaml",
        "# state-policy: accept SP004 server:delete because it is a museum\n",
    )
    assert wrong == []
    (judged,) = acceptance.apply([FOUND], accepted)
    assert judged.reason == "it is a museum"


def test_another_rule_is_not_accepted():
    accepted, _ = acceptance.read(
        "a.yaml", "#state-policy:accept SP004 class:destroy because x"
    )
    judged, stale = acceptance.apply([FOUND], accepted)
    assert judged.reason is None
    assert stale.finding.code == "SP011"
    assert stale.finding.rule == "class:destroy"


def test_a_stale_acceptance_has_its_line():
    accepted, _ = acceptance.read(
        "a.yaml", "\n\n  # state-policy: accept SP004 x because y"
    )
    (judged,) = acceptance.apply([], accepted)
    assert judged.finding.place == "a.yaml:3"
    assert "SP004" in judged.finding.message


@pytest.mark.parametrize(
    "line",
    [
        "# state-policy: accept SP004 server:delete",
        "# state-policy: accept SP004 server:delete because",
        "# state-policy: accept SP004 because x",
        "# state-policy: ignore SP004 server:delete because x",
        "# state-policy: accept SP999 server:delete because x",
        "# state-policy: accept SP011 server:delete because x",
    ],
)
def test_one_that_cannot_be_read_is_an_error(line):
    accepted, wrong = acceptance.read("a.yaml", line)
    assert accepted == []
    assert [(found.code, found.place) for found in wrong] == [
        ("SP012", "a.yaml:1")
    ]


def test_other_comments_are_nobodys_business():
    text = '# about state-policy\n"a": "b"  # state-policy: accept\n'
    assert acceptance.read("a.yaml", text) == ([], [])
