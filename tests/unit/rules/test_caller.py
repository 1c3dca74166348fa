# SPDX-License-Identifier: Apache-2.0
"""Conditions on the caller."""

import subprocess
import sys

import pytest
from oslo_config import cfg
from oslo_policy import policy

from state_policy.engine.facts import CALLER
from state_policy.engine.literal import Change
from state_policy.rules import load
from state_policy.rules.kinds import caller
from state_policy.rules.kinds.caller import compile_caller

MEMBER = {
    "user_id": "u1",
    "project_id": "a1",
    "roles": ["Member", "reader"],
    "is_admin": False,
    "system_scope": None,
    "service_roles": ["service"],
    "target": {"project_id": "a1", "user_id": "u2"},
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("role:member", True),
        ("role:MEMBER", True),
        ("role:admin", False),
        ("roles:Member", True),
        ("roles:member", False),
        ("service_roles:service", True),
        ("project_id:a1", True),
        ("project_id:a2", False),
        ("project_id:%(project_id)s", True),
        ("user_id:%(user_id)s", False),
        ("is_admin:False", True),
        ("is_admin:True", False),
        ("system_scope:all", False),
        ("domain_id:d1", False),
        ("service_user_id:u1", False),
    ],
)
def test_value(text, wanted):
    literal = compile_caller(*text.split(":", 1))
    assert literal.fact == CALLER
    assert literal.change is Change.FIXED
    assert literal.test(MEMBER) is wanted


def test_without_the_servers_owner_it_is_open():
    literal = compile_caller("project_id", "%(project_id)s")
    assert literal.test({"project_id": "a1"}) is None
    assert literal.test({"project_id": None, "target": {}}) is None
    assert literal.test(None) is None


@pytest.mark.parametrize("kind", ["role", "roles", "user_id", "domain_id"])
@pytest.mark.parametrize(
    "name", ["a|b", "a&&b", "*admin", "!a", "=a", "<a", ">=a", "~a"]
)
def test_a_name_with_signs_is_compared_as_oslo_policy_does(
    tmp_path, kind, name
):
    """No other way to write it would mean the same to oslo.policy."""
    path = tmp_path / "a.yaml"
    path.write_text(f'"server:stop": "{kind}:{name}"\n')
    assert "server:stop" in load([path]).sources
    literal = compile_caller(kind, name)
    enforcer = policy.Enforcer(cfg.ConfigOpts(), use_conf=False)
    enforcer.set_rules(policy.Rules.from_dict({"a": f"{kind}:{name}"}))
    for value, wanted in ((name, True), ("b", False)):
        many = kind in ("role", "roles")
        credentials = {"roles" if many else kind: [value] if many else value}
        assert literal.test(credentials) is wanted
        assert enforcer.enforce("a", {}, credentials) is wanted


@pytest.mark.parametrize(
    "text",
    [
        "role:",
        "role:*",
        "user_id:*",
        "role:a%7Cb",
        "project_id:a|b",
        "project_id:!a1",
        "is_admin:!True",
        "system_scope:!all",
        "role:admin,member",
        "role:%(role)s",
        "role:%(project_id)s",
        "role:my%20role",
        "role:'admin'",
        "project_id:%(tenant_id)s",
        "project_id:x%(project_id)s",
        "user_id:%",
        "is_admin:true",
        "is_admin:1",
        "is_admin:%(user_id)s",
        "is_admin_project:yes",
        "system_scope:project",
    ],
)
def test_refused(text):
    with pytest.raises(ValueError, match=r"^[^A-Z\n]"):
        compile_caller(*text.split(":", 1))


NOVA_KEYS = """
from oslo_config import cfg
from nova import context
cfg.CONF([], project="nova", default_config_files=[])
print(*context.RequestContext().to_policy_values())
"""


def test_keys_are_those_of_nova():
    # In a process of its own: Nova's configuration is global.
    done = subprocess.run(
        [sys.executable, "-c", NOVA_KEYS],
        capture_output=True,
        check=True,
        text=True,
    )
    # `tenant` and `user` are old names that Nova may still give.
    found = set(done.stdout.split()) - {"tenant", "user"}
    assert set(caller.KEYS) == found
