# SPDX-License-Identifier: Apache-2.0
"""Each sort of finding: where it is found and where it is not."""

import pytest

from state_policy.engine.analysis.finding import CODES
from state_policy.engine.analysis.search import findings

#: Rules, and the findings they must have: code and rule, notes left out.
CASES = {
    "nothing": ("{}", set()),
    "never true": (
        '"server:stop": "server.vm_state:active and server.vm_state:error"',
        {("SP001", "server:stop")},
    ),
    "never true through a reference": (
        '"server:stop": "rule:x and not server.task_state:none"\n'
        '"x": "server.task_state:none"',
        {("SP001", "server:stop")},
    ),
    "never true by ages": (
        '"server:stop": "server.age:<10m and server.age:>=1h"',
        {("SP001", "server:stop")},
    ),
    "two tags are no contradiction": (
        '"server:stop": "server.tag:a and server.tag:b"',
        {("SP007", "server:stop")},
    ),
    "two roles are none either": (
        '"server:stop": "role:a and role:b"',
        set(),
    ),
    "two projects are": (
        '"server:stop": "project_id:a and project_id:b"',
        {("SP001", "server:stop")},
    ),
    "always true": (
        '"server:stop": "server.vm_state:active or not rule:x"\n'
        '"x": "server.vm_state:active"',
        {("SP002", "server:stop")},
    ),
    "always true by ages": (
        '"server:stop": "server.age:<1h or server.age:>=60m"',
        {("SP002", "server:stop")},
    ),
    "all vm_states": (
        '"server:stop": "server.vm_state:active,building,paused,suspended,'
        "stopped,rescued,resized,soft-delete,deleted,error,shelved,"
        'shelved_offloaded"',
        {("SP002", "server:stop")},
    ),
    "a part is covered": (
        '"server:stop": "not (rule:busy and rule:snapshotting)"',
        {("SP003", "server:stop")},
    ),
    "a longer age is covered": (
        '"server:stop": "not (server.age:>=1h and server.age:>=2h)"',
        {("SP003", "server:stop")},
    ),
    "a rule that follows a default covers nothing": (
        '"server:stop": "rule:class:any and server.vm_state:active"',
        set(),
    ),
    "a helper that nobody uses": (
        '"mine": "role:admin"',
        {("SP003", "mine")},
    ),
    "a helper of the sweep is used": (
        '"mine": "quarantine.age:>=1d"\n"quarantine:purge": "rule:mine"',
        set(),
    ),
    "a class that decides nothing": (
        '"class:snapshot": "not rule:busy"\n"server:create_image": "@"\n'
        '"server:create_backup": "@"',
        {("SP003", "class:snapshot")},
    ),
    "a suffix that is never asked": (
        '"server:stop": "not rule:busy"\n'
        '"server:stop:brake": "rule:busy and project.deletes:1h:>5"',
        {("SP003", "server:stop:brake")},
    ),
    "an escalation behind a quarantine": (
        '"server:delete:quarantine": "rule:deleting"\n'
        '"server:delete:escalate": "rule:deleting and server.age:>=1h"',
        {("SP003", "server:delete:escalate")},
    ),
    "a delete that a state refuses for ever": (
        '"class:destroy": "not rule:building"',
        {("SP004", "class:destroy")},
    ),
    "with a bound": (
        '"class:destroy": "not (rule:building and server.state_age:<1h)"',
        set(),
    ),
    "force_delete is a way out, and a twin": (
        '"server:delete": "not rule:building"\n"server:force_delete": "@"',
        {("SP006", "server:delete")},
    ),
    "a host may stay away": (
        '"class:destroy": "not server.host_up:false"',
        {("SP004", "class:destroy")},
    ),
    "a cell comes back": (
        '"class:destroy": "not server.cell_up:false"',
        set(),
    ),
    "a lock is opened": (
        '"class:destroy": "not server.locked:true"',
        set(),
    ),
    "unless that is refused": (
        '"class:destroy": "not server.locked:true"\n"server:unlock": "!"',
        {("SP004", "class:destroy")},
    ),
    "a delete for a role alone": (
        '"class:destroy": "role:operator"',
        {("SP004", "class:destroy")},
    ),
    "a brake on recent deletes ends": (
        '"server:delete:brake": "project.deletes:10m:>50"',
        set(),
    ),
    "a brake on a state may not": (
        '"server:delete:brake": "rule:building"',
        {("SP004", "server:delete:brake")},
    ),
    "a rebuild is a twin": (
        '"server:delete": "not (server.az:a and server.age:<90d)"',
        {("SP006", "server:delete")},
    ),
    "but not where Nova refuses it": (
        '"server:delete": "not (rule:snapshotting and server.age:<90d)"',
        set(),
    ),
    "a tag that its owner takes off": (
        '"class:destroy": "not server.tag:keep"',
        {("SP007", "class:destroy")},
    ),
    "metadata": (
        '"class:power": "not server.metadata:keep=1"',
        {("SP007", "class:power")},
    ),
    "a tag that opens": (
        '"class:power": "server.tag:open"',
        {("SP007", "class:power")},
    ),
    "a tag that only some set": (
        '"class:power": "server.tag:open"\n'
        '"server:add_tag": "server.tag:open"\n'
        '"server:replace_tags": "server.tag:open"',
        set(),
    ),
    "a quarantine by tag": (
        '"server:delete:quarantine": "server.tag:look"',
        {("SP007", "server:delete:quarantine")},
    ),
    "a wait for what does not pass": (
        '"server:stop": "not server.image:none"\n'
        '"server:stop:wait": "server.image:none"',
        {("SP008", "server:stop:wait")},
    ),
    "a wait for what a build alone ends": (
        '"server:stop": "not server.hypervisor:none"\n'
        '"server:stop:wait": "server.hypervisor:none"',
        set(),
    ),
    "a wait for what passes": (
        '"server:stop": "not rule:snapshotting"\n'
        '"server:stop:wait": "rule:snapshotting"',
        set(),
    ),
    "a wait for nothing": (
        '"server:stop:wait": "rule:snapshotting"',
        {("SP009", "server:stop:wait")},
    ),
    "a wait beside the refusal": (
        '"server:stop": "not rule:snapshotting"\n'
        '"server:stop:wait": "rule:resizing"',
        {("SP009", "server:stop:wait")},
    ),
    "a protection without a bound": (
        '"class:destroy": "not server.az:vault"',
        {("SP010", "class:destroy")},
    ),
    "with one": (
        '"class:destroy": "not (server.az:vault and server.age:<90d)"',
        set(),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_findings(rules, name):
    text, expected = CASES[name]
    found = {
        (finding.code, finding.rule)
        for finding in findings(rules(text))
        if finding.code != "SP005"
    }
    assert found == expected


def test_opaque_refusals_name_the_tasks(rules):
    (finding,) = [
        finding
        for finding in findings(
            rules('"server:stop": "not server.task_state:image_uploading"')
        )
        if finding.code == "SP005"
    ]
    assert finding.rule == "server:stop"
    assert "ACTIVE" in finding.message
    assert "(task_state image_uploading)" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        '"server:stop": "not server.host_up:false"',
        # What waits is not refused.
        '"server:stop": "not rule:snapshotting"\n'
        '"server:stop:wait": "rule:snapshotting"',
        # Neither does one status both here.
        '"server:stop": "not server.vm_state:building"',
    ],
)
def test_what_is_not_opaque(found, text):
    assert "SP005" not in found(text)


def test_a_finding_says_where(rules, tmp_path):
    (finding,) = findings(rules('# x\n"class:destroy": "role:a"\n'))
    assert finding.place == f"{tmp_path}/rules.yaml:2"
    assert "in *(but deleted)/*:" in finding.message


def test_a_way_out_has_a_counterexample(rules):
    (finding,) = [
        finding
        for finding in findings(
            rules(
                '"class:destroy": "not (server.vm_state:error and '
                'server.host_up:false)"'
            )
        )
        if finding.code == "SP004"
    ]
    assert "error/*" in finding.message
    assert "host_up false" in finding.message


def test_every_code_has_a_line_of_advice():
    for code, sort in CODES.items():
        assert code.startswith("SP")
        assert sort.advice
        assert "\n" not in sort.advice
        assert not sort.advice.endswith(".")


def test_every_code_is_tested_here_or_beside():
    """The rest is found by `check` in files, or by kinds of third parties."""
    tested = {code for _, expected in CASES.values() for code, _ in expected}
    assert {*CODES} - tested == {"SP005", "SP011", "SP012", "SP013", "SP014"}
