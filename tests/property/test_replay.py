# SPDX-License-Identifier: Apache-2.0
"""A log holds little of sets, and still replays to no other decision."""

import json

from hypothesis import given, settings

from state_policy.cmd.replay import Replayed
from state_policy.engine.evaluate import decide
from state_policy.engine.ports.reading import Caller
from state_policy.rules import load
from state_policy.wsgi.record import describe
from tests.property import strategies
from tests.property.test_decide import loaded

SETS = ("server.metadata", "server.tag", "server.volumes", "server.running")
NOBODY = Caller({}, "req-1")


def replayed(rules, decision):
    """Return what became of the only line of a log."""
    found = Replayed()
    line = describe(decision, NOBODY, "server-1")
    found.run(rules, [json.dumps(line)])
    assert (found.read, found.skipped) == (1, 0)
    return found.changes()


@settings(max_examples=150, deadline=None)
@given(strategies.rule_files(SETS), strategies.facts(*SETS))
def test_the_same_rules_decide_the_same(trees, facts):
    rules = loaded(trees)
    assert replayed(rules, decide(rules, "delete", facts)) == []


def test_a_brake_tells_what_else_was_asked(tmp_path):
    """The rule of the operation is asked first, and again at the replay."""
    file = tmp_path / "rules.yaml"
    file.write_text(
        '"server:delete": "not server.metadata:a=1"\n'
        '"server:delete:brake": "server.metadata:b=1"\n'
    )
    rules = load([file])
    facts = {"server.metadata": frozenset({"b=1", "x=y"})}
    decision = decide(rules, "delete", facts)
    assert decision.verdict == "brake"
    assert replayed(rules, decision) == []


@settings(max_examples=150, deadline=None)
@given(
    strategies.rule_files(SETS),
    strategies.rule_files(SETS),
    strategies.facts(*SETS),
)
def test_other_rules_decide_as_on_the_facts_or_are_undecided(old, new, facts):
    rules = loaded(new)
    wanted = decide(rules, "delete", facts)
    for change in replayed(rules, decide(loaded(old), "delete", facts)):
        if not change.undecided:
            told = f"{wanted.verdict}" + (
                f" {wanted.code}" if wanted.verdict == "deny" else ""
            )
            assert change.new == told
