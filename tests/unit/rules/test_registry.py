# SPDX-License-Identifier: Apache-2.0
"""Kinds of third parties: what is wrong with one refuses the start."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oslo_policy.policy import Check

from state_policy.engine.changes import READ_WITH
from state_policy.engine.literal import Change, Literal
from state_policy.rules import RulesError, load
from state_policy.rules.kinds import BUILTIN, GROUP, Kind, discover
from state_policy.rules.kinds.contract import KindContract, violations
from state_policy.rules.kinds.names import Flag


class Maintenance(Flag):
    """A good kind."""

    change = Change.PASSING


class Abstract(Kind):
    """Forgot to compile."""

    change = Change.FIXED


class Changeless(Flag):
    """Forgot to say how its fact changes."""


class Foreign(Check):
    """Another project's check."""


class Clumsy(Kind):
    """Fails on any match."""

    change = Change.FIXED

    def compile(self):
        return {}["missing"]


class Loose(Flag):
    """Says in a text how its fact changes."""

    change = "sometimes"  # type: ignore[assignment]


class Greedy(Flag):
    """Wants a fact that nobody reads."""

    change = Change.FIXED
    wants = frozenset({"server.moon_phase"})


class Single(Flag):
    """Wants a text, not a set of texts."""

    change = Change.FIXED
    wants = "server.host"  # type: ignore[assignment]


def function(kind, match):
    """Make a check, as oslo.policy would have it."""
    return Foreign(kind, match)


@dataclass
class Point:
    """An entry point, as far as discovery looks at it."""

    name: str
    target: Any
    value: str = "acme.kinds:Kind"
    dist: Any = None

    def load(self):
        if isinstance(self.target, BaseException):
            raise self.target
        return self.target


def test_nothing_installed_but_ours():
    points = [
        Point(name, kind, f"{kind.__module__}:{kind.__qualname__}")
        for name, kind in BUILTIN.items()
    ]
    assert discover(points) == BUILTIN


def test_a_good_one_is_found():
    found = discover([Point("acme.maintenance", Maintenance)])
    assert found == {**BUILTIN, "acme.maintenance": Maintenance}


def test_other_projects_checks_are_not_our_affair():
    points = [
        Point("field", Foreign),
        Point("field", function),
        Point("http", Foreign),
        Point("owner", ImportError("not here")),
        Point("leaver", SystemExit(3)),
        Point("other.check", Foreign),
        Point("another.check", function),
    ]
    assert discover(points) == BUILTIN


BAD = {
    "missing": (
        Point("acme.gone", AttributeError("no attribute `Gone`")),
        "cannot be imported: AttributeError: no attribute `Gone`",
    ),
    "broken": (
        Point("acme.broken", ModuleNotFoundError("No module\nnamed x")),
        "cannot be imported: ModuleNotFoundError: No module named x",
    ),
    "shadowing one of ours": (
        Point("server.vm_state", Maintenance),
        "takes the name of the kind `server.vm_state` of this project",
    ),
    "in our names": (
        Point("server.moon_phase", Maintenance),
        "names that start with `server.` are kept for this project",
    ),
    "shadowing oslo.policy's": (Point("role", Maintenance), "has a dot"),
    "shadowing a credential": (Point("project_id", Maintenance), "has a dot"),
    "half a name": (Point("acme.", Maintenance), "has a dot"),
    "name with a colon": (Point("acme.a:b", Maintenance), "has a dot"),
    "leaving": (
        Point("acme.leaving", SystemExit(3)),
        "cannot be imported: SystemExit: 3",
    ),
    "no kind, shadowing one of ours": (
        Point("server.task_state", Foreign),
        "takes the name of the kind `server.task_state` of this project",
    ),
    "a function, shadowing one of ours": (
        Point("server.host", function),
        "takes the name of the kind `server.host` of this project",
    ),
    "no kind, in our names": (
        Point("server.foo", Foreign),
        "names that start with `server.` are kept for this project",
    ),
    "a function, in our names": (
        Point("quarantine.foo", function),
        "names that start with `quarantine.` are kept for this project",
    ),
    "gone, in our names": (
        Point("cloud.foo", ImportError("not here")),
        "names that start with `cloud.` are kept for this project",
    ),
    "no kind, shadowing `rule`": (Point("rule", Foreign), "oslo.policy's own"),
    "no kind, shadowing roles": (
        Point("roles", function),
        "takes the name of a condition of oslo.policy's own",
    ),
    "no kind, shadowing a credential": (
        Point("user_id", Foreign),
        "takes the name of a condition of oslo.policy's own",
    ),
    "change of no known way": (
        Point("acme.loose", Loose),
        "its `change` is `'sometimes'`, which is no Change",
    ),
    "wants what is not there": (
        Point("acme.greedy", Greedy),
        "it wants `server.moon_phase`, which the driver knows not",
    ),
    "wants no set": (Point("acme.single", Single), "which is no set"),
    "no compile": (Point("acme.abstract", Abstract), "how it compiles"),
    "no change": (Point("acme.changeless", Changeless), "how its fact"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_ones(name):
    point, reason = BAD[name]
    with pytest.raises(RulesError) as caught:
        discover([point])
    (fault,) = caught.value.faults
    assert str(fault).startswith(f"kind {point.name}: ")
    assert reason in fault.reason
    assert "\n" not in str(fault)


def test_duplicates_are_named_both():
    class Dist:
        name = "acme-tools"

    points = [
        Point("acme.maintenance", Maintenance, "acme.one:Kind"),
        # Not adjacent: other resolvers see only neighbours.
        Point("acme.other", Maintenance),
        Point("acme.maintenance", Maintenance, "acme.two:Kind", Dist()),
    ]
    with pytest.raises(RulesError) as caught:
        discover(points)
    assert str(caught.value) == (
        "kind acme.maintenance of acme-tools: the same kind comes from"
        " `acme.one:Kind`"
    )


@pytest.mark.parametrize("first", [Foreign, function, Maintenance])
@pytest.mark.parametrize("second", [Foreign, function, Maintenance])
def test_a_name_with_a_dot_is_offered_once_whatever_it_is(first, second):
    points = [
        Point("acme.x", first, "acme.one:X"),
        Point("acme.x", second, "acme.two:X"),
    ]
    with pytest.raises(RulesError) as caught:
        discover(points)
    assert str(caught.value) == (
        "kind acme.x: the same kind comes from `acme.one:X`"
    )


def test_all_bad_ones_at_once():
    with pytest.raises(RulesError) as caught:
        discover([point for point, _ in BAD.values()])
    assert len(caught.value.faults) == len(BAD)


def test_a_kind_that_is_not_installed_is_named_by_the_rule(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text('"server:stop": "not acme.maintenance:true"')
    with pytest.raises(RulesError, match=r"unknown kind `acme\.maint"):
        load([path])
    kinds = discover([Point("acme.maintenance", Maintenance)])
    rules = load([path], kinds)
    assert rules.operations["stop"].may.needs == {"acme.maintenance"}


def test_broken_kinds_and_broken_rules_are_told_together(
    tmp_path, monkeypatch
):
    path = tmp_path / "a.yaml"
    path.write_text('"server:stop": "acme.gone:true"\n"class:ayn": "!"')

    def installed():
        return discover([BAD["missing"][0]])

    monkeypatch.setattr("state_policy.rules.loader.installed", installed)
    with pytest.raises(RulesError) as caught:
        load([path])
    assert [str(fault).split(":")[0] for fault in caught.value.faults] == [
        "kind acme.gone",
        str(path),
    ]


def test_a_kind_that_fails_is_a_fault_of_the_rule(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text('"server:stop": "acme.clumsy:x"')
    kinds = discover([Point("acme.clumsy", Clumsy)])
    with pytest.raises(RulesError) as caught:
        load([path], kinds)
    assert str(caught.value) == (
        f"{path}:1: `acme.clumsy:x`: the kind failed: KeyError: 'missing'"
    )


def made(**fields):
    """Return a kind whose literal differs in some fields from a good one."""

    class Made(Kind):
        change = fields.get("change", Change.FIXED)

        def compile(self):
            good = {
                "kind": self.kind,
                "match": self.match,
                "fact": self.kind,
                "change": self.change,
                "test": lambda value: True,
            }
            return Literal(**{**good, **fields})

    return Made


class NoLiteral(Kind):
    """Compiles to a text."""

    change = Change.FIXED

    def compile(self):
        return "nope"


class Leaving(Kind):
    """Ends the process."""

    change = Change.FIXED

    def compile(self):
        raise SystemExit(3)


class Unmade(Kind):
    """Takes no match."""

    change = Change.FIXED

    def __init__(self, kind):
        pass

    def compile(self):
        return None


def raising(value):
    raise KeyError(value)


_STOLEN = "which is neither a fact of its own nor one that the driver reads"
FAULTY = {
    "no literal": (
        NoLiteral,
        "its `compile` returns `'nope'`, which is no Literal",
    ),
    "another condition": (
        made(kind="acme.other"),
        "compiles to the condition",
    ),
    "change": (
        made(change="sometimes"),
        "its `change` is `'sometimes'`, which is no Change",
    ),
    "caller": (made(fact="caller"), f"it looks at `caller`, {_STOLEN}"),
    "another's fact": (
        made(fact="acme.other"),
        f"it looks at `acme.other`, {_STOLEN}",
    ),
    "no fact": (made(fact=None), f"it looks at `None`, {_STOLEN}"),
    "samples": (made(samples=[1]), "its `samples` are no tuple"),
    "samples without a hash": (made(samples=([],)), "its `samples` are no"),
    "domain without a hash": (made(domain=({},)), "its `domain` are no"),
    "names": (made(names="abc"), "its `names` are no frozenset"),
    "test that raises": (
        made(test=raising, samples=(1,)),
        "its `test` gives `KeyError(1)` for its own sample `1`",
    ),
    "test that counts": (
        made(test=lambda value: 0, samples=(1,)),
        "its `test` gives `0` for its own sample `1`: neither",
    ),
    "leaving": (Leaving, "the kind failed: SystemExit: 3"),
    "unmade": (Unmade, "the kind failed: TypeError: "),
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_kind_that_breaks_its_contract_is_a_fault_of_the_rule(
    name, tmp_path
):
    kind, reason = FAULTY[name]
    path = tmp_path / "a.yaml"
    path.write_text('"server:stop": "acme.k:x"\n"server:strat": "@"\n')
    with pytest.raises(RulesError) as caught:
        load([path], {**BUILTIN, "acme.k": kind})
    first, second = map(str, caught.value.faults)
    assert first.startswith(f"{path}:1: `acme.k:x`: the kind ")
    assert reason in first
    assert second.startswith(f"{path}:2: ")


@pytest.mark.parametrize("name", FAULTY)
def test_the_suite_for_plugins_finds_it_too(name):
    tested, _ = FAULTY[name]

    class Contract(KindContract):
        pass

    Contract.name, Contract.kind = "acme.k", tested
    Contract.good, Contract.bad, Contract.values = ("x",), (), ()
    broken = violations(Contract)
    assert [text for text in broken if text.startswith("test_good_matches")]


@pytest.mark.parametrize("fact", ["acme.k", "acme.k:5m", "server.host"])
def test_facts_that_a_kind_may_look_at(fact, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text('"server:stop": "acme.k:x"')
    rules = load([path], {**BUILTIN, "acme.k": made(fact=fact)})
    needs = rules.operations["stop"].may.needs
    assert needs == READ_WITH.get(fact, frozenset()) | {fact}


def test_the_package_has_an_entry_point_for_each_kind():
    text = Path(__file__).parents[3].joinpath("pyproject.toml").read_text()
    stated = tomllib.loads(text)["project"]["entry-points"][GROUP]
    assert stated == {
        name: f"{kind.__module__}:{kind.__qualname__}"
        for name, kind in BUILTIN.items()
    }
