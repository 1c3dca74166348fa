# SPDX-License-Identifier: Apache-2.0
"""The analysis against brute force through oslo.policy, and the engine."""

from __future__ import annotations

import os
import random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from state_policy.engine.analysis import cells, exits, table
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.compare import Comparison
from state_policy.engine.analysis.context import Context
from state_policy.engine.analysis.neighbours import label_of
from state_policy.engine.analysis.outcome import Analysis
from state_policy.engine.analysis.search import findings
from state_policy.engine.evaluate import decide
from state_policy.engine.expression import literals
from state_policy.engine.facts import Age
from state_policy.rules import load
from tests.property import strategies
from tests.property.brute import Brute, states

#: Random cells in all, in this module's largest test; many more by
#: `make fuzz`.
CELLS = int(os.environ.get("STATE_POLICY_CELLS", "20000"))
MANY_CELLS = 100_000
#: Rule sets that these are spread over.
SETS = 50

_FILES = strategies.rule_files()


def texts_of(trees):
    return {name: strategies.written(tree) for name, tree in trees.items()}


def rules_of(texts, folder, name="rules.yaml"):
    path = folder / name
    path.write_text(yaml.safe_dump(texts))
    return load([path])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rules")


def label_at(labels, choice, bit):
    """Return the label of the one cell; there must be exactly one."""
    found = []
    for label, diagram in labels.items():
        while not isinstance(diagram, int):
            diagram = diagram.children[choice[diagram.axis]]
        if diagram & bit:
            found.append(label)
    assert len(found) == 1
    return found[0]


def cell(space, facts):
    choice, _ = table.place(space, facts)
    bit = dd.pair_bit(facts["server.vm_state"], facts["server.task_state"])
    return choice, bit


@settings(max_examples=60, deadline=None)
@given(_FILES, st.lists(strategies.WHOLE_FACTS, min_size=1, max_size=8))
def test_outcomes_are_those_of_the_engine(folder, trees, many):
    rules = rules_of(texts_of(trees), folder)
    analysis = Analysis(rules)
    for facts in many:
        place = cell(analysis.space, facts)
        for name in ("delete", "force_delete", "stop"):
            decision = decide(rules, name, facts)
            found = label_at(analysis.outcomes[name].labels, *place)
            assert found == label_of(decision)


@settings(max_examples=15, deadline=None)
@given(_FILES)
def test_decisions_share_the_space_out(folder, trees):
    analysis = Analysis(rules_of(texts_of(trees), folder))
    for outcomes in analysis.outcomes.values():
        counted = sum(
            dd.count(cells_, analysis.space.arity, outcomes.axes)
            for cells_ in outcomes.labels.values()
        )
        assert counted == analysis.space.cells(outcomes.axes)


def random_files(count):
    """Return rule files as texts; the same ones in every run."""
    rng = random.Random(20261201)
    matches = [
        f"{kind}:{match}"
        for kind, found in strategies.MATCHES.items()
        for match in found
    ]

    def text(depth):
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(matches)
        if rng.random() < 0.25:
            return f"not ({text(depth - 1)})"
        word = rng.choice((" and ", " or "))
        parts = [f"({text(depth - 1)})" for _ in range(rng.choice((2, 3)))]
        return word.join(parts)

    names = [*strategies.DELETE, "class:power", "server:rebuild"]
    return [
        {name: text(3) for name in names if rng.random() < 0.8}
        for _ in range(count)
    ]


def random_cell(rng, space):
    """Return a random cell: its region of each axis, its bit, its facts."""
    choice = [rng.randrange(len(axis.regions)) for axis in space.axes]
    state = rng.choice(tuple(states()))
    facts = cells.facts_of(space, dict(enumerate(choice)), state)
    return choice, dd.pair_bit(*state), facts


@pytest.mark.parametrize(
    "count",
    [CELLS, pytest.param(MANY_CELLS, marks=pytest.mark.fuzz)],
    ids=["short", "whole"],
)
def test_random_cells_are_those_of_the_enforcer(folder, count):
    """Both `check`'s tables and `diff`'s cells, 0 differences."""
    rng = random.Random(7)
    files = random_files(SETS)
    wrong = compared = different = 0
    for old, new in zip(files, files[1:] + files[:1], strict=True):
        found = Comparison(
            rules_of(old, folder, "old.yaml"), rules_of(new, folder)
        )
        by_operation = {}
        for item in found.differences:
            by_operation.setdefault(item.operation, []).append(item)
        brutes = Brute(old), Brute(new)
        for _ in range(count // SETS):
            choice, bit, facts = random_cell(rng, found.space)
            name = rng.choice(("delete", "force_delete", "stop", "rebuild"))
            seen = [brute.verdict(name, facts) for brute in brutes]
            labels = [
                label_at(side.outcomes[name].labels, choice, bit)
                for side in (found.old, found.new)
            ]
            compared += 1
            wrong += [plain(label) for label in labels] != seen
            changes = [
                (item.old, item.new)
                for item in by_operation.get(name, ())
                if holds(item.where, choice, bit)
            ]
            expected = [tuple(labels)] if labels[0] != labels[1] else []
            wrong += changes != expected
            different += seen[0] != seen[1]
    assert compared >= count // SETS * SETS
    assert different > compared // 20, "the sets hardly differ"
    assert wrong == 0


def plain(label):
    """Return what oslo.policy can tell: it does not know what lifts."""
    verdict = "deny" if label.verdict == "wait" else str(label.verdict)
    return verdict, label.evidence


def holds(diagram, choice, bit):
    while not isinstance(diagram, int):
        diagram = diagram.children[choice[diagram.axis]]
    return bool(diagram & bit)


#: Kinds of few values, so that every cell can be tried.
_FEW = (
    "server.vm_state",
    "server.task_state",
    "server.state_age",
    "server.locked",
    "role",
)
_AGES = (Age(0), Age(600), Age(3601))


def every_cell():
    """Yield the facts of every cell that rules of these kinds can tell."""
    for vm_state, task_state in states():
        for age in _AGES:
            for locked in (False, True):
                yield {
                    "server.vm_state": vm_state,
                    "server.task_state": task_state,
                    "server.state_age": age,
                    "server.locked": locked,
                    "caller": {
                        "roles": ["member"],
                        "project_id": "a1",
                        "user_id": "u1",
                        "target": {"project_id": "a1", "user_id": "u1"},
                    },
                }


@settings(max_examples=4, deadline=None)
@given(strategies.rule_files(_FEW))
def test_ways_out_are_those_of_brute_force(folder, trees):
    """A way out is tried step by step: older, unlocked, or both."""
    texts = texts_of(trees)
    # The owner has one role only, and no role opens or shuts the exits.
    texts = {n: t.replace("role:admin", "!") for n, t in texts.items()}
    texts = {n: t.replace("role:Member", "@") for n, t in texts.items()}
    brute = Brute(texts)
    free = {}
    for facts in every_cell():
        key = tuple(list(facts.values())[:4])
        free[key] = any(
            brute.holds(f"server:{name}", facts)
            and not brute.holds(f"server:{name}:brake", facts)
            for name in ("delete", "force_delete")
        )
    unlocks = not texts.get("class:repair")
    context = Context(Analysis(rules_of(texts, folder)))
    stuck = list(exits.ways_out(context))
    expected = any(
        not any(
            free[vm_state, task_state, later, now]
            for later in _AGES
            if later >= age
            for now in ((locked, False) if unlocks else (locked,))
        )
        for vm_state, task_state, age, locked in free
        if vm_state != "deleted"
    )
    assert bool(stuck) is expected


@settings(max_examples=4, deadline=None)
@given(strategies.rule_files(_FEW))
def test_findings_are_those_of_brute_force(folder, trees):
    """Never true, always true, twins, and waits for what is not refused."""
    texts = {
        name: text.replace("role:admin", "!").replace("role:Member", "@")
        for name, text in texts_of(trees).items()
    }
    brute = Brute(texts)
    seen = {name: set() for name in texts}
    waits = twin = False
    for facts in every_cell():
        for name in texts:
            seen[name].add(brute.holds(name, facts))
        refused = not brute.holds("server:delete", facts)
        waits |= refused and brute.holds("server:delete:wait", facts)
        twin |= (
            refused
            and facts["server.vm_state"] in ("active", "stopped", "error")
            and facts["server.task_state"] is None
            and brute.holds("server:rebuild", facts)
        )
    rules = rules_of(texts, folder)
    found = {(item.code, item.rule) for item in findings(rules)}
    for name, values in seen.items():
        used = not any(literals(rules.expressions[name]))
        expected = {
            (True, False): "SP002",
            (False, True): "SP001",
        }.get((values == {True}, values == {False}))
        for code in ("SP001", "SP002"):
            if used or ("SP003", name) in found:
                # Nothing to be said of constants and of unused rules.
                continue
            assert ((code, name) in found) is (code == expected)
    assert (("SP006", "server:delete") in found) is (
        twin and "server:delete" in texts
    )
    wait = "server:delete:wait"
    assert ((("SP009", wait)) in found) is (
        True in seen.get(wait, ()) and not waits
    )
