# SPDX-License-Identifier: Apache-2.0
"""What rules ask for that is not carried out yet."""

import pytest

from state_policy.rules import load, unsupported

RULES = """\
"server:delete:quarantine": "rule:building"
"server:delete:wait": "rule:snapshotting"
"server:stop:brake": "project.deletes:10m:>50"
"server:stop:escalate": "!"
"server:stop:evidence": "@"
"quarantine:purge": "quarantine.completed:true"
"quarantine:release": "!"
"class:any": "not server.cell_up:false"
"""


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(RULES)
    return load([path])


def test_named_with_file_and_line(rules, tmp_path):
    found = unsupported(rules, ["deny", "quarantine"])
    assert [str(fault) for fault in found] == [
        f"{tmp_path}/a.yaml:2: `server:delete:wait`: the filter does not"
        " carry out `wait` yet",
        f"{tmp_path}/a.yaml:3: `server:stop:brake`: the filter does not"
        " carry out `brake` yet",
        f"{tmp_path}/a.yaml:5: `server:stop:evidence`: the filter does not"
        " carry out `evidence` yet",
    ]


def test_what_is_carried_out_is_no_fault(rules, tmp_path):
    everything = ["quarantine", "wait", "brake", "escalate", "evidence"]
    assert unsupported(rules, everything) == []
    assert [str(fault) for fault in unsupported(rules, everything[1:])] == [
        f"{tmp_path}/a.yaml:{line}: `{name}`: the quarantine is off"
        " ([state_policy_quarantine] enabled)"
        for line, name in (
            (1, "server:delete:quarantine"),
            (6, "quarantine:purge"),
        )
    ]


def test_defaults_ask_for_nothing():
    assert unsupported(load(), []) == []
