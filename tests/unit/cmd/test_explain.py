# SPDX-License-Identifier: Apache-2.0
"""`state-policy explain`."""

import argparse
import sys
import types

import pytest
from oslo_config import cfg

from state_policy.cmd import config

RULES = """
"server:delete:quarantine": "rule:building and server.state_age:>=60m"
"server:delete": "not (rule:snapshotting and server.state_age:<30m)"
"server:stop": "role:operator"
"""


@pytest.fixture
def explain(file, run_json):
    def explain(*arguments, text=RULES):
        return run_json("explain", "--rules", file(text), *arguments)

    return explain


def test_a_file_that_the_filter_refuses_is_refused_here(run, tmp_path):
    more = tmp_path / "state_policy.d"
    more.mkdir()
    (more / "10-guard.yaml").symlink_to(tmp_path / "gone")
    conf = tmp_path / "nova.conf"
    conf.write_text("")
    found = run("--config-file", conf, "explain", "delete")
    assert found[0] == 3
    assert f"{more}/10-guard.yaml:1: cannot be read: no such" in found[2]
    (more / "10-guard.yaml").unlink()
    code, lines, _ = run("--config-file", conf, "explain", "delete")
    assert (code, lines[0]) == (0, "delete: allow")


def test_a_refusal(explain):
    code, found = explain(
        *("delete", "--state", "active", "--task-state", "image_uploading"),
        *("--age", "900", "--role", "member"),
    )
    assert code == 0
    assert {
        key: found[key]
        for key in ("verdict", "code", "retry_after", "rule", "evidence")
    } == {
        "verdict": "deny",
        "code": 409,
        "retry_after": 30,
        "rule": "server:delete",
        "evidence": False,
    }
    assert found["rules"] == ["server:delete", "snapshotting"]
    assert found["facts"] == {
        "server.task_state": "image_uploading",
        "server.state_age": "900s",
    }
    assert "task_state image_uploading" in found["message"]
    assert len(found["revision"]) >= 8
    assert found["id"]


def test_the_answer_that_a_client_would_get(explain):
    _, found = explain("delete", "--task-state", "image_backup", "--age", "5m")
    answer = found["answer"]
    assert answer["status"] == 409
    assert answer["headers"] == {"Retry-After": "30"}
    body = answer["body"]["conflictingRequest"]
    assert body["code"] == 409
    assert body["message"] == found["message"]
    assert body["state_policy"]["rule"] == "server:delete"


def test_what_would_change_it(explain):
    _, found = explain(
        *("delete", "--state", "building", "--task-state", "spawning"),
        *("--age", "15m"),
    )
    assert found["verdict"] == "allow"
    assert {
        "facts": {"server.state_age": [">=60m"]},
        "verdict": "quarantine",
        "code": None,
        "evidence": False,
    } in found["would_change"]


def test_a_quarantine_is_answered_like_a_delete(explain):
    _, found = explain("delete", "--state", "building", "--age", "2h")
    assert (found["verdict"], found["code"]) == ("quarantine", 204)
    _, found = explain("force_delete", "--state", "building", "--age", "2h")
    assert (found["verdict"], found["code"]) == ("quarantine", 202)
    assert found["answer"]["body"] is None


def test_roles(explain):
    _, found = explain("stop")
    assert (found["verdict"], found["code"]) == ("deny", 403)
    assert found["would_change"] == [
        {
            "facts": {"caller:role:operator": ["yes"]},
            "verdict": "allow",
            "code": None,
            "evidence": False,
        }
    ]
    _, found = explain("stop", "--role", "member", "--role", "operator")
    assert found["verdict"] == "allow"


def test_what_is_not_given_is_not_read(explain):
    _, found = explain("delete", "--task-state", "image_backup")
    assert (found["verdict"], found["undecided"]) == ("allow", True)


def test_other_facts_and_credentials(explain):
    text = (
        '"server:stop": "not server.tag:keep and not project.deletes:10m:>5 '
        'and domain_id:d and not project_id:%(project_id)s"'
    )
    given = ("--fact", "tag=none", "--fact", "project.deletes:10m=5")
    caller = ("--credential", "domain_id=d", "--not-owner")
    _, found = explain("stop", *given, *caller, text=text)
    assert found["verdict"] == "allow"
    _, found = explain("stop", *given, *caller[:2], text=text)
    assert found["verdict"] == "deny"


def test_words_for_people(file, run):
    code, lines, _ = run(
        *("explain", "delete", "--rules", file(RULES)),
        *("--task-state", "image_uploading", "--age", "10m"),
    )
    text = "\n".join(lines)
    assert code == 0
    assert lines[0] == "delete: deny (code 409, Retry-After 30)"
    assert "rules.yaml:3)" in text
    assert "  HTTP 409" in lines
    assert "  Retry-After: 30" in lines
    assert "  server.state_age >=30m: allow" in lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("delte",), "did you mean `delete`?"),
        (("delete", "--state", "bilding"), "did you mean `building`?"),
        (("delete", "--age", "soon"), "`soon`"),
        (("delete", "--fact", "x"), "`x` is not KEY=VALUE"),
        (("delete", "--fact", "x=y"), "unknown fact `x`"),
        (("delete", "--credential", "x=y"), "unknown credential `x`"),
        ((), "which OPERATION?"),
        (
            ("--server", "x", "--state", "active", "--host-up", "true"),
            "--state, --host-up beside --server",
        ),
    ],
)
def test_usage(file, run, arguments, said):
    code, _, err = run("explain", "--rules", file(RULES), *arguments)
    assert code == 2
    assert said in err


def test_invalid_rules(file, run):
    code, _, err = run("explain", "stop", "--rules", file('"server:stp": "@"'))
    assert code == 3
    assert "rules.yaml:1: " in err


def test_the_rules_of_the_configuration(file, run):
    conf = file(f"[state_policy]\npolicy_file = {file(RULES)}\n", "nova.conf")
    code, lines, _ = run("--config-file", conf, "explain", "stop")
    assert code == 0
    assert lines[0] == "stop: deny (code 403)"


@pytest.mark.parametrize("form", ["table", "csv", "yaml"])
def test_formats(file, run, form):
    code, lines, _ = run("explain", "stop", "--rules", file(RULES), "-f", form)
    assert code == 0
    assert any("server:stop" in line for line in lines)


@pytest.mark.parametrize("named", [True, False])
def test_what_counts_alone_is_said_once(file, run, monkeypatch, named):
    conf = file(
        f"[state_policy]\ndriver = memory\npolicy_file = {file(RULES)}\n"
        "[wsgi]\napi_paste_config = no-such-paste.ini\n",
        "nova.conf",
    )
    options = argparse.Namespace(config_file=[conf], config_dir=[])
    monkeypatch.setattr(cfg, "CONF", config.load(options))
    process = "state_policy.drivers.nova.process"
    monkeypatch.setitem(
        sys.modules, process, types.SimpleNamespace(start=lambda _: None)
    )
    rules = ["--rules", file(RULES)] if named else []
    code, _, err = run(
        "--config-file", conf, "explain", "--server", "x", *rules
    )
    assert code == 1
    assert "no server `x`" in err
    assert err.count("options of nova.conf count alone") == 1
