# SPDX-License-Identifier: Apache-2.0
"""`state-policy test`: the format that others write."""

from xml.etree import ElementTree

import pytest

from state_policy.cmd.casefile import values
from state_policy.engine.facts import Age

RULES = """
"server:delete:quarantine": "rule:building and \
server.state_age:>=60m and cloud.stuck:<20"
"server:delete": "not (rule:snapshotting and server.state_age:<30m)"
"server:delete:evidence": "rule:building"
"""
CASES = """
tests:
- name: an old build is quarantined
  rules: [rules.yaml]
  operation: delete
  caller: {roles: [member], owner: true}
  given: {vm_state: building, task_state: spawning, state_age: 61m, \
host_up: true, cloud.stuck: 1}
  expect: {verdict: quarantine, evidence: true, \
rule: "server:delete:quarantine", code: 204}
- name: a snapshot is left to end
  rules: [rules.yaml]
  operation: delete
  given: {vm_state: active, task_state: image_uploading, state_age: 5m}
  expect: {verdict: deny, code: 409, retry_after: 30, \
message_contains: task_state image_uploading}
invalid:
- {rules: [bad.yaml], expect: "unknown kind"}
"""


@pytest.fixture
def suite(file, tmp_path):
    """Return a function that writes the files of a suite."""

    def suite(cases=CASES, rules=RULES):
        file(rules)
        file('"server:stop": "server.vm_sate:x"', "bad.yaml")
        file(cases, "tests/../cases.yaml")
        return tmp_path

    return suite


def test_the_format_of_the_documentation(suite, run):
    code, lines, _ = run("test", suite())
    assert (code, lines) == (0, ["3 passed, 0 failed"])


def test_a_failure_says_where_and_what(suite, run):
    folder = suite(CASES.replace("verdict: quarantine", "verdict: allow"))
    code, lines, _ = run("test", folder)
    assert code == 1
    assert lines == [
        f"{folder}/cases.yaml:3: an old build is quarantined: expected "
        "verdict allow, got quarantine by `server:delete:quarantine`",
        "2 passed, 1 failed",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("code: 409", "code: 403", "expected code 403, got 409"),
        ("retry_after: 30", "retry_after: 9", "retry_after 9, got 30"),
        ("evidence: true", "evidence: false", "evidence false, got true"),
        ("uploading}", "x}", "expected a message with `task_state image_x`"),
        ("unknown kind", "no such", "got `"),
        ("[bad.yaml]", "[rules.yaml]", "the rules were not refused"),
    ],
)
def test_every_expectation_can_fail(suite, run, old, new, said):
    text = CASES
    assert old in text
    code, lines, _ = run("test", suite(text.replace(old, new)))
    assert code == 1
    assert said in lines[0]


@pytest.mark.parametrize("written", ["none", "null"])
def test_that_there_is_none_can_be_expected(suite, run, written):
    text = CASES.replace("code: 204", f"retry_after: {written}")
    assert text != CASES
    assert run("test", suite(text))[0] == 0
    text = CASES.replace("code: 409", f"code: {written}")
    code, lines, _ = run("test", suite(text))
    assert code == 1
    assert lines[0].endswith("expected code none, got 409")


@pytest.mark.parametrize(
    ("rule", "met"),
    [
        ("server:force_delete:quarantine", True),
        ("server:delete:quarantine", True),
        ("server:delete", False),
        ("building", False),
    ],
)
def test_the_rule_that_another_follows_by_default(suite, run, rule, met):
    text = CASES.replace("operation: delete", "operation: force_delete", 1)
    text = text.replace('"server:delete:quarantine"', f'"{rule}"')
    text = text.replace("code: 204", "code: 202")
    assert run("test", suite(text))[0] == (0 if met else 1)


def test_rules_that_do_not_load(suite, run):
    code, lines, err = run("test", suite(rules='"server:delete": "x"'))
    assert code == 3
    assert "rules.yaml:1: " in err + "\n".join(lines)


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("vm_state: b", "vm_sate: b", 7, "unknown fact `vm_sate`"),
        ("building", "bilding", 7, "unknown vm_state `bilding`"),
        ("61m", "61", None, None),
        ("61m", "61y", 7, "`61y`"),
        ("cloud.stuck: 1", "cloud.stuck: x", 7, "no whole number"),
        ("cloud.stuck: 1", "cloud.stuck: \u00b2", 7, "no whole number"),
        ("61m", "\u00b2", 7, "is no span of time"),
        ("61m", "-61", 7, "`-61` is no span of time"),
        ("61m", ".inf", 7, "`inf` is no span of time"),
        ("host_up: true", "host_up: maybe", 7, "neither true nor false"),
        ("host_up: true", "host_up: ", 7, "write `none` for no value"),
        ("owner: true", "ower: true", 6, "unknown credential `ower`"),
        ("roles: [member]", "roles: member", 6, "`roles` is a list"),
        ("operation: delete", "operation: delet", 5, "unknown operation"),
        ("verdict: q", "verdct: q", 8, "unknown key `verdct`"),
        ("verdict: quarantine", "verdict: move", 8, "unknown verdict `move`"),
        ("code: 204", "code: soon", 8, "`code` cannot be `soon`"),
        ("  rules: [rules.yaml]\n", "", 3, "`rules` is a list of files"),
        ("- name: an", "- nam: an", 3, "unknown key `nam`"),
        ("host_up: true", "vm_state: error", 7, "stated twice"),
        ("host_up: true", "server.vm_state: error", 7, "is given twice"),
        ("project.deletes", "x", None, None),
        ("cloud.stuck: 1", "project.deletes: 1", 7, "lacks a window"),
        ("invalid:", "invald:", 14, "unknown key `invald`"),
    ],
)
def test_a_bad_case_file(suite, run, old, new, line, reason):
    folder = suite(CASES.replace(old, new, 1))
    code, _, err = run("test", folder)
    if line is None:
        # Seconds need no unit here, and what is not there changes nothing.
        assert code in (0, 1)
        return
    assert code == 2
    first = err.splitlines()[0]
    assert first.startswith(f"{folder}/cases.yaml:{line}: ")
    assert reason in first


def test_mappings_can_be_merged(suite, run):
    text = CASES.replace("  given: {vm_state: b", "  given: &old {vm_state: b")
    text = text.replace(
        "vm_state: active, task", "<<: *old, vm_state: active, task"
    )
    assert text.count("old") == CASES.count("old") + 2
    assert run("test", suite(text))[0] == 0
    text = text.replace("<<: *old", "<<: *old, vm_state: error")
    code, _, err = run("test", suite(text))
    assert code == 2
    assert "`vm_state` is stated twice" in err


def test_rules_that_nobody_knows(suite, run):
    folder = suite(CASES.replace("[rules.yaml]", '["preset:inrt"]', 1))
    code, _, err = run("test", folder)
    assert code == 2
    assert err.startswith(f"{folder}/cases.yaml:3: unknown preset `inrt`")


def test_all_faults_at_once(suite, run):
    text = CASES.replace("building", "bilding").replace("delete\n", "x\n")
    code, _, err = run("test", suite(text))
    assert code == 2
    assert len(err.splitlines()) == 2


def test_no_test_is_an_error(file, run, tmp_path):
    file(RULES)
    code, _, err = run("test", tmp_path)
    assert code == 2
    assert "no test found" in err


def test_no_such_directory(run, tmp_path):
    assert run("test", tmp_path / "no")[0] == 2


def test_a_broken_file_is_told_unless_a_case_wants_it(suite, file, run):
    folder = suite(CASES.replace("bad.yaml", "tab.yaml").replace("kind", "x"))
    file('\t"a": 1', "tab.yaml")
    code, lines, _ = run("test", folder)
    assert code == 1
    assert "tab" in lines[0]
    folder = suite()
    code, _, err = run("test", folder)
    assert code == 2
    assert "tab.yaml:1: is no YAML" in err


def test_coverage(suite, run):
    code, lines, _ = run("test", suite(), "--coverage")
    assert code == 0
    assert (
        "rules.yaml:2: `server:delete:quarantine`: no test where "
        "`cloud.stuck:<20` is false"
    ) in [line.rpartition("/")[2] for line in lines]
    assert any(line.startswith("coverage ") for line in lines)
    assert run("test", suite(), "--fail-under", "100")[0] == 1
    assert run("test", suite(), "--fail-under", "50")[0] == 0


def test_a_rule_that_no_test_asks(suite, run):
    folder = suite(rules=RULES + '"server:stop": "role:admin"\n')
    lines = run("test", folder, "--coverage")[1]
    assert any(
        line.endswith("`server:stop` was asked by no test") for line in lines
    )


def test_junit(suite, run, tmp_path):
    out = tmp_path / "junit.xml"
    folder = suite(CASES.replace("code: 409", "code: 403"))
    assert run("test", folder, "--junit", out)[0] == 1
    (found,) = ElementTree.parse(out).getroot()
    assert found.attrib["tests"] == "3"
    assert found.attrib["failures"] == "1"
    (failed,) = [case for case in found if len(case)]
    assert failed.attrib["name"] == "a snapshot is left to end"
    assert failed[0].attrib["message"] == "expected code 403, got 409"


def test_formats(suite, run_json, run):
    code, rows = run_json("test", suite())
    assert code == 0
    assert [row["result"] for row in rows] == ["passed"] * 3
    assert len(run("test", suite(), "-f", "csv")[1]) == 4


@pytest.mark.parametrize(
    ("key", "value", "fact"),
    [
        ("state_age", "61m", ("server.state_age", Age(3660.0))),
        ("state_age", 90, ("server.state_age", Age(90.0))),
        ("state_age", ">=1h", ("server.state_age", Age(3600.0, False))),
        ("task_state", "none", ("server.task_state", None)),
        ("server.host_up", "true", ("server.host_up", True)),
        ("power_state", 4, ("server.power_state", "shutdown")),
        ("tag", ["a", "b"], ("server.tag", frozenset({"a", "b"}))),
        ("tag", "a,b", ("server.tag", frozenset({"a", "b"}))),
        ("metadata", {"k": "v"}, ("server.metadata", frozenset({"k=v"}))),
        ("running", "any", ("server.running", frozenset({"any"}))),
        ("running", "create", ("server.running", frozenset({"create"}))),
        ("project.deletes:10m", 51, ("project.deletes:10m", 51)),
        ("quarantine.age", "14d", ("quarantine.age", Age(1209600.0))),
    ],
)
def test_values(key, value, fact):
    assert values.fact(key, value) == fact


def test_a_caller_is_the_owner_unless_told_otherwise():
    found = values.caller({"roles": ["admin"], "owner": False})
    assert found["target"]["project_id"] != found["project_id"]
    assert found["is_admin"] is True
    found = values.caller({"project_id": "p"})
    assert found["target"]["project_id"] == "p"
    assert found["roles"] == ["member"]
    assert found["is_admin"] is False
