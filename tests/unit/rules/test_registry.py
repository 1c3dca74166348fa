# SPDX-License-Identifier: Apache-2.0
"""Kinds of third parties: what is wrong with one refuses the start."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from oslo_policy.policy import Check

from state_policy.engine.literal import Change
from state_policy.rules import RulesError, load
from state_policy.rules.kinds import BUILTIN, GROUP, Kind, discover
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


@dataclass
class Point:
    """An entry point, as far as discovery looks at it."""

    name: str
    target: Any
    value: str = "acme.kinds:Kind"
    dist: Any = None

    def load(self):
        if isinstance(self.target, Exception):
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
        Point("owner", ImportError("not here")),
        Point("other.check", Foreign),
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


def test_the_package_has_an_entry_point_for_each_kind():
    text = Path(__file__).parents[3].joinpath("pyproject.toml").read_text()
    stated = tomllib.loads(text)["project"]["entry-points"][GROUP]
    assert stated == {
        name: f"{kind.__module__}:{kind.__qualname__}"
        for name, kind in BUILTIN.items()
    }
