# SPDX-License-Identifier: Apache-2.0
"""Diagrams and regions: small spaces that can be counted by hand."""

import pytest

from state_policy.engine.analysis import cells
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.outcome import Analysis
from state_policy.engine.analysis.space import Space
from state_policy.engine.evaluate import decide
from state_policy.engine.expression import Condition
from state_policy.engine.literal import Change, Literal
from state_policy.engine.ruleset import RuleSet


def labels(space, fact):
    return {
        str(space.axes[index]): [r.label for r in space.axes[index].regions]
        for index in space.of(fact)
    }


def test_the_plane_is_counted():
    assert dd.PLANE == 12 * 43
    assert dd.FULL.bit_count() == 516
    assert len(list(dd.pairs(dd.FULL))) == 516


def test_states_are_no_axes(rules):
    space = Space(rules('"server:stop": "rule:building and rule:busy"'))
    assert space.axes == []
    assert space.cells() == 516


def test_ages_are_cut_at_all_thresholds(rules):
    space = Space(
        rules(
            '"server:stop": "server.age:>=30m or server.age:<2h"\n'
            '"server:start": "server.age:>2h"'
        )
    )
    assert labels(space, "server.age") == {
        "server.age": [
            "<30m",
            ">=30m and <2h",
            ">=2h and <=2h",
            ">2h",
        ]
    }


def test_one_span_in_two_units_is_one_cut(rules):
    space = Space(rules('"server:stop": "server.age:>=60m or server.age:<1h"'))
    assert len(space.axes[0].regions) == 2


def test_counts_keep_their_window(rules):
    space = Space(rules('"server:stop": "project.deletes:10m:>50"'))
    assert labels(space, "project.deletes:10m") == {
        "project.deletes:10m": ["<=50", ">50"]
    }


def test_each_name_of_a_set_is_asked_apart(rules):
    space = Space(rules('"server:stop": "server.tag:a,b and server.tag:c"'))
    assert labels(space, "server.tag") == {
        f"server.tag:{name}": ["no", "yes"]
        for name in ("a", "b", "c", "(other)")
    }


@pytest.mark.parametrize("text", ["é", "%C3%A9", "%c3%a9"])
def test_a_name_that_is_encoded_is_the_name(rules, text):
    found = rules(f'"server:stop": "server.tag:{text}"\n')
    assert set(labels(Space(found), "server.tag")) == {
        "server.tag:é",
        "server.tag:(other)",
    }


def test_each_role_is_asked_apart_and_other_keys_by_value(rules):
    space = Space(
        rules(
            '"server:stop": "role:Admin or role:admin or project_id:a1 or '
            'project_id:%(project_id)s or is_admin:True"'
        )
    )
    assert labels(space, "caller") == {
        "caller:is_admin": ["False", "True"],
        "caller:project_id": ["(other)", "a1"],
        "caller:project_id:%(project_id)s": ["no", "yes"],
        "caller:role:admin": ["no", "yes"],
    }


def test_none_is_a_region_of_its_own(rules):
    space = Space(rules('"server:stop": "server.host_up:none"'))
    assert labels(space, "server.host_up") == {
        "server.host_up": ["none", "true,false"]
    }


def test_cells_are_counted(rules):
    analysis = Analysis(
        rules('"server:stop": "rule:building and server.tag:a"')
    )
    outcomes = analysis.outcomes["stop"]
    assert analysis.space.cells(outcomes.axes) == 516 * 2
    arity = analysis.space.arity
    assert dd.count(outcomes.passed, arity, outcomes.axes) == 43
    assert dd.count(outcomes.refused, arity, outcomes.axes) == 516 * 2 - 43


def test_a_condition_that_needs_all_names_is_said_loudly():
    def both(value):
        return value is not None and {"a", "b"} <= set(value)

    literal = Literal(
        "acme.x",
        "a,b",
        "acme.x",
        Change.FIXED,
        both,
        (None, frozenset({"a"}), frozenset({"b"}), frozenset({"c"})),
    )
    space = Space(RuleSet({"server:stop": Condition(literal)}, "r"))
    assert space.bounds == [
        "`acme.x:a,b` does not hold when one of its names does; it is taken "
        "as if it did"
    ]


def test_a_condition_that_cannot_judge_is_undecided():
    def broken(value):
        raise RuntimeError

    literal = Literal("acme.x", "a", "acme.x", Change.FIXED, broken, (1, 2))
    analysis = Analysis(RuleSet({"server:stop": Condition(literal)}, "r"))
    outcomes = analysis.outcomes["stop"]
    assert outcomes.passed == outcomes.refused == 0
    (label,) = outcomes.labels
    assert label.verdict == "allow"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("server.running:create and not server.running:delete", 409),
        ("server.running:none", 409),
        # Nothing tries two actions at once.
        ("server.running:create and server.running:delete", 403),
        ("server.tag:a", 403),
        ("not server.tag:a", 403),
    ],
)
def test_a_set_comes_to_have_one_name(rules, text, code):
    made = rules(f'"server:stop": "{text}"')
    seen = frozenset({"stop"})
    tags = frozenset({"b"} if text == "server.tag:a" else {"a"})
    facts = {"server.running": seen, "server.tag": tags, "caller": {}}
    assert decide(made, "stop", facts).code == code
    labels = Analysis(made).outcomes["stop"].labels
    assert {label.code for label in labels} == {None, code}


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("*/*", dd.FULL),
        ("building/*", dd.ROW << dd.WIDTH),
        ("*/none", dd.COLUMN),
        ("*(but building)/*", dd.FULL ^ (dd.ROW << dd.WIDTH)),
    ],
)
def test_states_in_words(text, bits):
    assert cells.states(bits) == text


def test_groups_have_their_names():
    tasks = ("rebooting", "reboot_pending", "reboot_started")
    hard = tuple(f"{name}_hard" for name in tasks)
    bits = sum(dd.pair_bit("active", task) for task in tasks + hard)
    assert cells.states(bits) == "active/rule:rebooting"


def test_facts_of_a_cell_are_in_it(rules):
    from state_policy.engine.analysis import table

    space = Space(
        rules(
            '"server:stop": "server.tag:a,b and server.age:>1h and role:x '
            "and project_id:a1 and not project_id:%(project_id)s and "
            'server.flavor:small and server.running_age:<5m"'
        )
    )
    for number in range(256):
        regions = {
            index: (number >> index) % len(axis.regions)
            for index, axis in enumerate(space.axes)
        }
        facts = cells.facts_of(space, regions, ("active", None))
        assert table.place(space, facts)[0] == list(regions.values())


def test_flags_of_a_cell_are_booleans(rules):
    """As Nova gives them; its own check of ``is_admin`` compares no text."""
    space = Space(rules('"server:stop": "is_admin:True"'))
    found = [
        cells.facts_of(space, {0: region}, ("active", None))["caller"]
        for region in range(2)
    ]
    assert [caller["is_admin"] for caller in found] == [False, True]
