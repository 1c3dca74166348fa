# SPDX-License-Identifier: Apache-2.0
"""Of what people keep in a server only what a rule names is written down."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from state_policy.cmd import answer
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import Age, Part
from state_policy.engine.literal import Change, Literal
from state_policy.rules import load
from state_policy.rules.kinds import BUILTIN, Kind
from state_policy.rules.kinds.names import Choice, Members
from tests.unit.wsgi.requests import action, ask
from tests.unit.wsgi.rules import driver, make, rules

MARK = "hunter2"

#: Every fact that is a set of what its owner or the operator made up.
SETS = {
    "server.metadata": ("tier=gold", f"db_password={MARK}"),
    "server.tag": ("gold", MARK),
    "server.volumes": ("155d900f-4e14-4e4c-a73d-069cbf4541e6", MARK),
    "server.aggregate": ("gold", MARK),
}


def logged(text: str, facts: Any, caplog: Any, **more: Any) -> dict[str, Any]:
    """Return the facts of the only line that a request leaves."""
    caplog.set_level(logging.DEBUG)
    ask(make(text, driver(facts=facts), **more), action("pause"))
    (line,) = (
        record.getMessage()
        for record in caplog.records
        if record.name == "state_policy.decisions"
    )
    found: dict[str, Any] = json.loads(line)["facts"]
    return found


@pytest.mark.parametrize("mode", ["enforce", "warn", "audit"])
@pytest.mark.parametrize("fact", SETS)
def test_the_log(mode: str, fact: str, caplog: Any) -> None:
    named, _ = SETS[fact]
    text = f'"server:pause": "not {fact}:{named}"'
    facts = {fact: frozenset(SETS[fact])}
    found = logged(text, facts, caplog, mode=mode, shadow='"class:any": "!"')
    assert found == {fact: {"has": [named], "lacks": [], "others": True}}
    assert MARK not in caplog.text


@pytest.mark.parametrize("fact", SETS)
def test_explain(fact: str) -> None:
    named, _ = SETS[fact]
    facts = {fact: frozenset(SETS[fact])}
    found = decide(
        rules(f'"server:pause": "not {fact}:{named}"'), "pause", facts
    )
    assert answer.of(found, facts)["facts"] == {fact: [named, "..."]}
    assert MARK not in str(answer.http(found, facts))


def test_what_several_conditions_name_is_told_together(caplog: Any) -> None:
    text = '"server:pause": "not (server.tag:a,b or server.tag:c)"'
    facts = {"server.tag": frozenset({"b", "c", MARK})}
    assert logged(text, facts, caplog) == {
        "server.tag": {"has": ["b", "c"], "lacks": ["a"], "others": True}
    }


@pytest.mark.parametrize(
    ("match", "value", "wanted"),
    [
        ("a", {"a"}, ["a"]),
        ("a,b", {"a"}, ["a"]),
        ("a", set(), []),
        ("a", None, None),
        ("any", {MARK}, {"has": [], "lacks": [], "others": True}),
    ],
)
def test_what_is_named_altogether_is_a_list(
    match: str, value: Any, wanted: Any, caplog: Any
) -> None:
    text = f'"server:pause": "server.tag:{match} and !"'
    facts = {"server.tag": value if value is None else frozenset(value)}
    assert logged(text, facts, caplog) == {"server.tag": wanted}


def test_names_of_nova_are_told_whole(caplog: Any) -> None:
    text = (
        '"server:pause": "server.running:stop or server.flavor:m1 '
        'or server.migration:resize"'
    )
    facts = {
        "server.running": frozenset({"reboot", "create"}),
        "server.migration": frozenset({"evacuation"}),
        "server.flavor": frozenset({"m2", "42"}),
    }
    assert logged(text, facts, caplog) == {
        "server.running": ["create", "reboot"],
        "server.migration": ["evacuation"],
        "server.flavor": ["42", "m2"],
    }


def test_an_action_that_is_not_known_has_no_name() -> None:
    found = decide(
        rules('"server:pause": "server.running:none"'),
        "pause",
        {"server.running": frozenset({MARK})},
    )
    told = answer.message(found, found.facts)
    assert told is not None
    assert "while an operation is still running" in told
    assert MARK not in str(answer.http(found, found.facts))


class Opaque(Kind):
    """A kind that does not say what it names."""

    change = Change.FIXED

    def compile(self) -> Literal:
        """Return a condition that is never true."""
        return self.literal_for(lambda value: False, [None])


class Labels(Members):
    """A kind of a family that does."""

    change = Change.FIXED


class Name(Choice):
    """A kind whose set is one thing's names."""

    change = Change.FIXED


class Odd:
    """Neither a set nor a plain value."""

    def __str__(self) -> str:
        return MARK

    def __iter__(self) -> Any:
        raise RuntimeError(MARK)


WITHHELD = {"has": [], "lacks": [], "others": True}


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        (Opaque, frozenset({MARK}), WITHHELD),
        (Opaque, {"k": MARK}, WITHHELD),
        (Opaque, [MARK], WITHHELD),
        (Opaque, [[MARK]], WITHHELD),
        (Opaque, MARK.encode(), WITHHELD),
        (Opaque, Odd(), WITHHELD),
        (Opaque, "plain", "plain"),
        (Opaque, 5, 5),
        (Labels, frozenset({MARK}), {**WITHHELD, "lacks": ["x"]}),
        (Labels, {"x": MARK}, {**WITHHELD, "has": ["x"], "others": False}),
        (Name, frozenset({"a", "b"}), ["a", "b"]),
    ],
)
def test_kinds_of_third_parties(
    kind: type[Kind], value: Any, wanted: Any, tmp_path: Any
) -> None:
    from state_policy.wsgi.record import plain

    file = tmp_path / "policy.yaml"
    file.write_text('"server:pause": "acme.k:x and !"\n')
    found = decide(
        load([file], {**BUILTIN, "acme.k": kind}), "pause", {"acme.k": value}
    )
    assert plain(found.facts["acme.k"]) == wanted
    assert json.dumps(plain(found.facts["acme.k"]))


@pytest.mark.parametrize(
    ("match", "wanted"),
    [
        ("a", True),
        ("b", False),
        ("c", None),
        ("b,c", None),
        ("a,c", True),
        ("any", True),
        ("none", False),
    ],
)
def test_a_part_of_a_set_decides_what_it_can(
    match: str, wanted: bool | None
) -> None:
    part = Part(frozenset("a"), frozenset("b"), True)
    assert BUILTIN["server.tag"]("server.tag", match).literal.test(part) is (
        wanted
    )


def test_a_part_without_others_decides_everything() -> None:
    part = Part(frozenset("a"), frozenset(), False)
    tag = BUILTIN["server.tag"]
    assert tag("server.tag", "c").literal.test(part) is False
    empty = Part(frozenset(), frozenset("a"), False)
    assert tag("server.tag", "none").literal.test(empty) is True
    assert tag("server.tag", "any").literal.test(empty) is False


def test_ages_are_no_sets() -> None:
    found = decide(
        rules('"server:pause": "server.age:<1h"'),
        "pause",
        {"server.age": Age(7200)},
    )
    assert found.facts == {"server.age": Age(7200)}
