# SPDX-License-Identifier: Apache-2.0
"""What we compile against oslo.policy's own Enforcer, every fact given."""

from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_policy import policy

from state_policy.rules import defaults
from tests.property import strategies
from tests.property.test_decide import loaded


def enforcer_for(trees) -> policy.Enforcer:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[])
    enforcer = policy.Enforcer(conf, use_conf=False)
    texts = {name: strategies.written(tree) for name, tree in trees.items()}
    enforcer.set_rules(
        policy.Rules.from_dict({**defaults.texts(), **texts}), use_conf=False
    )
    return enforcer


@settings(max_examples=60, deadline=None)
@given(
    strategies.rule_files(),
    st.lists(strategies.WHOLE_FACTS, min_size=1, max_size=6),
)
def test_equal_answers(trees, many):
    rules, enforcer = loaded(trees), enforcer_for(trees)
    for facts in many:
        caller = facts["caller"]
        target = {**facts, **caller["target"]}
        creds = {k: v for k, v in caller.items() if k != "target"}
        for name in (*strategies.DELETE, "server:stop", "server:rebuild"):
            wanted = bool(enforcer.enforce(name, target, creds))
            assert rules.rules[name].test(facts) is wanted, name


def test_the_enforcer_uses_our_kinds():
    """The kinds are installed, so the comparison is no comparison of two
    ways to say no."""
    trees = {"server:delete": ("is", "server.vm_state", "building")}
    enforcer = enforcer_for(trees)
    assert enforcer.enforce(
        "server:delete", {"server.vm_state": "building"}, {}
    )
    assert not enforcer.enforce(
        "server:delete", {"server.vm_state": "error"}, {}
    )
    # What is not known is False to it.
    assert not enforcer.enforce("server:delete", {}, {})
