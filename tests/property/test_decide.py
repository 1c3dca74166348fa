# SPDX-License-Identifier: Apache-2.0
"""The engine against a naive evaluation, on random rules and facts."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Age, Part
from state_policy.rules import load
from tests.property import naive, strategies

#: Facts whose every value the naive evaluation can try.
TRIED = (
    "server.vm_state",
    "server.task_state",
    "server.state_age",
    "server.locked",
    "server.host_up",
    "cloud.stuck",
    "role",
)


def loaded(trees):
    with TemporaryDirectory() as directory:
        path = Path(directory, "rules.yaml")
        texts = {n: strategies.written(tree) for n, tree in trees.items()}
        path.write_text(json.dumps(texts))
        return load([path])


@settings(max_examples=60, deadline=None)
@given(
    strategies.rule_files(),
    st.lists(strategies.facts(), min_size=1, max_size=8),
)
def test_rules_have_the_naive_value(trees, many):
    rules, plain = loaded(trees), naive.Rules(trees)
    for facts in many:
        for name, tree in trees.items():
            assert rules.rules[name].test(facts) is plain.value(tree, facts)


@settings(max_examples=120, deadline=None)
@given(
    strategies.rule_files(TRIED),
    st.lists(strategies.facts(*TRIED), min_size=1, max_size=4),
)
def test_decisions_are_the_naive_ones(trees, many):
    rules, plain = loaded(trees), naive.Rules(trees)
    for facts in many:
        _same(rules, plain, facts)


def test_an_age_starts_anew_with_a_state_that_was_not_read():
    """One of those, seldom found: what was not read may change as well."""
    both = [
        ("is", "server.vm_state", "building"),
        ("is", "server.state_age", "<10m"),
    ]
    trees = {"server:delete": ("and", both)}
    rules, plain = loaded(trees), naive.Rules(trees)
    aged = {"server.state_age": Age(600)}
    _same(rules, plain, aged)
    assert decide(rules, "delete", aged).code == 409


def _same(rules, plain, facts) -> None:
    found = decide(rules, "delete", facts)
    assert (
        found.verdict,
        found.code,
        found.retry_after,
        found.undecided,
        found.evidence,
    ) == plain.decide(facts)
    _consistent(found, facts, rules)


def _consistent(found: Decision, facts, rules) -> None:
    """What a decision says about itself is true."""
    may = rules.rules["server:delete"]
    assert found.revision == rules.revision
    for key, value in found.facts.items():
        if isinstance(value, Part):
            assert value.has < facts[key]
            assert value.lacks.isdisjoint(facts[key])
            assert value.others
        else:
            assert facts[key] is value
    if found.verdict not in (Verdict.DENY, Verdict.WAIT):
        assert not found.lifts
        return
    assert may.test(facts) is False
    # Nothing blocks but the rule itself where it is never true.
    assert found.blocking or may.test({}) is False
    for blocker in found.blocking:
        assert naive.holds(blocker.kind, blocker.match, facts) is blocker.holds
    together = {lift.together for lift in found.lifts}
    assert len(together) < 2
    if True in together:
        # None of them can be left out.
        changed = {lift.fact: lift.values[0] for lift in found.lifts}
        assert may.test({**facts, **changed}) is not False
        for left_out in changed:
            less = {k: v for k, v in changed.items() if k != left_out}
            assert may.test({**facts, **less}) is False
    else:
        for lift in found.lifts:
            for value in lift.values:
                assert may.test({**facts, lift.fact: value}) is not False


@settings(max_examples=60, deadline=None)
@given(
    strategies.rule_files(),
    st.lists(strategies.JUNK_FACTS, min_size=1, max_size=5),
    st.sampled_from(["delete", "force_delete", "stop", "show"]),
    st.booleans(),
    st.frozensets(st.sampled_from(Verdict)),
)
def test_no_fact_makes_it_raise(trees, many, operation, refuse, without):
    rules = loaded(trees)
    for facts in many:
        found = decide(
            rules, operation, facts, refuse_unknown=refuse, without=without
        )
        assert isinstance(found, Decision)
        assert found.verdict not in without - {Verdict.ALLOW, Verdict.DENY}


@settings(max_examples=30, deadline=None)
@given(strategies.rule_files(), strategies.facts())
def test_knowing_less_changes_no_answer(trees, facts):
    """A fact left out leaves the answer as it was, or makes it undecided."""
    rules = loaded(trees)
    for name in trees:
        test = rules.rules[name].test
        for key in facts:
            less = {k: v for k, v in facts.items() if k != key}
            assert test(less) in (None, test(facts))


@settings(max_examples=30, deadline=None)
@given(strategies.rule_files(), strategies.WHOLE_FACTS, st.data())
def test_a_lower_bound_changes_no_answer(trees, facts, data):
    """With a bound in place of an age: the same answer, or none."""
    rules = loaded(trees)
    age = facts["server.state_age"]
    bound = data.draw(st.integers(0, int(age.seconds)))
    unsure = {**facts, "server.state_age": Age(bound, exact=False)}
    for name in trees:
        test = rules.rules[name].test
        assert test(unsure) in (None, test(facts))
