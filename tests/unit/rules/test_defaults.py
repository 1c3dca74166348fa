# SPDX-License-Identifier: Apache-2.0
"""The defaults, and oslo.policy's tools with them."""

import subprocess
import sys

import pytest
import yaml
from oslo_policy import policy

from state_policy.engine import operations
from state_policy.rules import load
from state_policy.rules.defaults import get_enforcer, list_rules


def names(rules, rule):
    return rules.rules[rule].names[1:]


def test_an_empty_file_changes_nothing():
    for found in load().operations.values():
        assert found.plain
        assert found.wait.constant is False


def test_inheritance():
    rules = load()
    assert names(rules, "server:stop") == ("class:power", "class:any")
    assert names(rules, "server:rebuild") == (
        "class:disk",
        "class:any",
        "class:destroy",
    )
    assert names(rules, "server:show") == ("class:read",)
    assert names(rules, "server:force_delete") == (
        "server:delete",
        "class:destroy",
        "class:any",
    )
    for suffix in operations.suffixes("force_delete"):
        assert names(rules, f"server:force_delete:{suffix}") == (
            f"server:delete:{suffix}",
        )
    for name in ("quarantine:purge", "quarantine:release"):
        assert rules.rules[name].constant is False


@pytest.mark.parametrize(
    ("stated", "shut", "still_open"),
    [
        ("class:any", {"stop", "delete", "rebuild", "lock"}, {"show"}),
        ("class:read", {"show", "list_actions"}, {"delete", "stop"}),
        ("class:disk", {"rebuild", "attach_volume"}, {"delete", "stop"}),
        ("class:destroy", {"rebuild", "delete", "force_delete"}, {"stop"}),
        ("server:delete", {"delete", "force_delete"}, {"rebuild"}),
        ("server:force_delete", {"force_delete"}, {"delete"}),
    ],
)
def test_a_line_covers_what_follows_it(tmp_path, stated, shut, still_open):
    path = tmp_path / "a.yaml"
    path.write_text(f'"{stated}": "!"')
    found = load([path]).operations
    for name in shut:
        assert found[name].may.constant is False, name
    for name in still_open:
        assert found[name].may.constant is True, name


def test_groups():
    rules = load()
    may = rules.rules["busy"].test
    assert may({"server.task_state": None}) is False
    assert may({"server.task_state": "spawning"}) is True
    assert may({}) is None
    deleting = rules.rules["deleting"].test
    assert deleting({"server.task_state": "soft-deleting"}) is True


def test_a_group_may_be_stated_as_it_is(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text('"busy": "not  server.task_state:none"')
    assert load([path]).revision == load().revision


def test_revision_names_the_content(tmp_path):
    def revision(text):
        path = tmp_path / "a.yaml"
        path.write_text(text)
        return load([path]).revision

    shut = revision('"class:any": "!"')
    assert shut == revision("# a comment\n'class:any':   '!'")
    assert shut != revision('"class:any": "@"')
    assert revision('"class:any": "@"') == load().revision


def test_every_rule_is_described():
    found = list_rules()
    assert len({rule.name for rule in found}) == len(found)
    for rule in found:
        assert rule.description
        documented = isinstance(rule, policy.DocumentedRuleDefault)
        assert documented == rule.name.startswith("server:")
    paths = {
        rule.name: rule.operations
        for rule in found
        if rule.name.startswith("server:")
    }
    assert paths["server:stop"] == [
        {"method": "POST", "path": "/servers/{server}/action (os-stop)"}
    ]


def test_the_enforcer_has_options_of_its_own():
    enforcer = get_enforcer()
    assert enforcer.conf.oslo_policy.policy_dirs == []
    assert enforcer.check_rules(raise_on_violation=True)
    creds = {"roles": [], "project_id": "p"}
    assert enforcer.enforce("server:stop", {}, creds)
    assert not enforcer.enforce("server:delete:quarantine", {}, creds)


def run(tool, *arguments):
    code = f"from oslo_policy import generator; generator.{tool}()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_sample_generator(tmp_path):
    path = tmp_path / "sample.yaml"
    done = run(
        "generate_sample",
        "--namespace",
        "state_policy",
        "--output-file",
        str(path),
    )
    assert done.returncode == 0, done.stderr
    sample = path.read_text()
    # As generated it states nothing; uncommented it states the defaults.
    assert load([path]).sources == {}
    path.write_text(sample.replace('\n#"', '\n"'))
    rules = load([path])
    assert len(rules.sources) == len(list_rules())
    assert rules.revision == load().revision


def test_validator_and_redundant_rules(tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text('"class:any": "@"\n"class:power": "server.locked:false"\n')
    conf = tmp_path / "tool.conf"
    conf.write_text(f"[oslo_policy]\npolicy_file = {path}\npolicy_dirs =\n")
    arguments = ["--namespace", "state_policy", "--config-file", str(conf)]
    done = run("validate_policy", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    done = run("list_redundant", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ['"class:any": "@"']
    path.write_text('"class:pwoer": "server.locked:false"\n')
    assert run("validate_policy", *arguments).returncode == 1


def test_policy_generator(tmp_path):
    path = tmp_path / "merged.yaml"
    done = run(
        "generate_policy",
        "--namespace",
        "state_policy",
        "--output-file",
        str(path),
    )
    assert done.returncode == 0, done.stderr
    merged = yaml.safe_load(path.read_text())
    assert merged["server:stop"] == "rule:class:power"
    assert load([path]).revision == load().revision
