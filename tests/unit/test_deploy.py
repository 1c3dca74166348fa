# SPDX-License-Identifier: Apache-2.0
"""Putting the filter together, and refusing to."""

from __future__ import annotations

import functools
import importlib.metadata
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oslo_config import cfg

from state_policy import deploy
from state_policy.conf import Settings
from state_policy.drivers.memory import Driver
from state_policy.wsgi import Filter, Mode
from tests.unit.wsgi.requests import Cloud, action, ask

BASE = {"driver": "memory"}


@pytest.fixture
def policy(tmp_path: Path) -> Iterator[Path]:
    """Give a policy file, and a configuration of its own to the process."""
    file = tmp_path / "policy.yaml"
    file.write_text("")
    return file


def build(policy: Path, **options: str) -> Filter:
    """Return the filter of a paste section."""
    options = {**BASE, "policy_file": str(policy), **options}
    return deploy.filter_factory({}, **options)(Cloud())


def faults(policy: Path, **options: str) -> tuple[str, ...]:
    """Return why a filter cannot be built."""
    with pytest.raises(deploy.DeployError) as raised:
        build(policy, **options)
    assert all(fault in str(raised.value) for fault in raised.value.faults)
    return raised.value.faults


def test_rules_that_come_to_be_where_they_are_looked_for_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = (tmp_path / "nova", tmp_path / "ours")
    settings = Settings(search=search).with_overrides(
        {"policy_file": "rules.yaml", "policy_dirs": "rules.d"}, rules=False
    )
    monkeypatch.setattr(
        deploy, "Store", functools.partial(deploy.Store, interval=0)
    )
    store = deploy.build_store(settings, ("deny",))
    found = search[1] / "rules.yaml"
    found.parent.mkdir()
    found.write_text('"server:stop": "!"\n')
    for _ in range(2):  # it is taken once it has stayed the same
        rules = store.current()
    assert rules.sources == {"server:stop": f"{found}:1"}


def test_entry_point() -> None:
    (point,) = importlib.metadata.entry_points(
        group="paste.filter_factory", name="state_policy"
    )
    assert point.load() is deploy.filter_factory


def test_inert(policy: Path) -> None:
    found = build(policy)
    assert ask(found, action("os-stop")).code == 202
    assert found.guard is None and found.events is None
    assert set(found.effects) == {"deny"}


def test_options_arrive(policy: Path, tmp_path: Path) -> None:
    found = build(
        policy,
        mode="warn",
        max_body="70000",
        disable_by_file_path=str(tmp_path / "off"),
    )
    assert found.options.mode is Mode.WARN
    assert found.options.max_body == 70000
    assert found.options.disabled_by == tmp_path / "off"


def test_both_pipelines_have_filters_of_their_own(policy: Path) -> None:
    factory = deploy.filter_factory({}, **BASE, policy_file=str(policy))
    assert factory(Cloud()) is not factory(Cloud())


def test_unknown_key(policy: Path) -> None:
    assert faults(policy, polcy_dirs="x") == (
        "`polcy_dirs` is not an option of the filter",
    )


def test_policy_file_that_is_not_there(policy: Path) -> None:
    (fault,) = faults(policy.with_name("absent.yaml"))
    assert "absent.yaml" in fault


def test_bad_rules_all_at_once(policy: Path) -> None:
    policy.write_text(
        '"server:stop": "server.vm_sate:active"\n"server:pauze": "@"\n'
    )
    found = faults(policy)
    assert [fault.split(": ")[0] for fault in found] == [
        f"{policy}:1",
        f"{policy}:2",
    ]


@pytest.mark.parametrize(
    "suffix", ["wait", "brake", "escalate", "evidence", "quarantine"]
)
def test_rules_that_nothing_carries_out(policy: Path, suffix: str) -> None:
    policy.write_text(f'"server:delete:{suffix}": "role:member"')
    (fault,) = faults(policy)
    assert fault.startswith(f"{policy}:1: `server:delete:{suffix}`")


def test_shadow_rules_are_refused_too(policy: Path) -> None:
    shadow = policy.with_name("shadow.yaml")
    shadow.write_text('"server:stop": "x"')
    policy.write_text('"server:stop": "y"')
    found = faults(policy, shadow_policy_file=str(shadow))
    assert len(found) == 2
    assert found[0].startswith(f"{policy}:1: ")
    assert found[1].startswith(f"{shadow}:1: ")


def test_missing_driver_and_bad_rules_at_once(policy: Path) -> None:
    policy.write_text('"server:stop": "x"')
    found = faults(policy, driver="clod")
    assert found[0] == "state_policy.drivers: `clod` is not installed"
    assert found[1].startswith(f"{policy}:1: ")


def test_quarantine_needs_projects(policy: Path) -> None:
    found = faults(policy, quarantine_enabled="true")
    assert any("projects" in fault for fault in found)


def test_quarantine_needs_a_driver_that_moves(policy: Path) -> None:
    found = faults(
        policy,
        quarantine_enabled="true",
        quarantine_projects="a0",
        quarantine_user="u",
    )
    assert found == ("effect `quarantine`: the driver cannot move servers",)


def test_quarantine_brings_guard_and_events(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[str] = []
    mover: Any = SimpleNamespace(prepare=lambda: prepared.append("once"))
    monkeypatch.setattr(
        "state_policy.drivers.memory.driver.Driver.__init__.__kwdefaults__",
        {**(Driver.__init__.__kwdefaults__ or {}), "mover": mover},
    )
    policy.write_text('"server:delete:quarantine": "server.vm_state:error"')
    found = build(
        policy,
        quarantine_enabled="true",
        quarantine_projects="a0",
        quarantine_user="u",
    )
    assert found.guard is not None and found.events is not None
    assert set(found.effects) == {"deny", "quarantine"}
    assert prepared == ["once"]


# -- plugins ------------------------------------------------------------------


class Point:
    """An entry point."""

    def __init__(self, name: str, loads: Any) -> None:
        self.name = name
        self.group = deploy.EFFECTS
        self.value = "x:y"
        self._loads = loads

    def load(self) -> Any:
        """Return the plugin, or fail."""
        if isinstance(self._loads, Exception):
            raise self._loads
        return self._loads


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[Point]:
    points: list[Point] = []
    monkeypatch.setattr(
        "stevedore.extension.ExtensionManager.list_entry_points",
        lambda manager: points,
    )
    return points


def test_plugins_are_loaded_by_name(installed: list[Point]) -> None:
    installed += [Point("a", int), Point("b", ImportError("never asked"))]
    assert deploy.plugins(deploy.EFFECTS, ["a"]) == {"a": int}


def test_missing_broken_and_duplicate_plugins_all_at_once(
    installed: list[Point],
) -> None:
    installed += [
        Point("twice", int),
        Point("other", int),
        Point("twice", float),
        Point("broken", ImportError("no module x")),
        Point("good", int),
    ]
    with pytest.raises(deploy.DeployError) as raised:
        deploy.plugins(deploy.EFFECTS, ["good", "twice", "broken", "missing"])
    assert raised.value.faults == (
        "state_policy.effects: `twice` is installed twice",
        "state_policy.effects: `broken`: ImportError: no module x",
        "state_policy.effects: `missing` is not installed",
    )


# -- configuration ------------------------------------------------------------


def test_the_process_s_configuration_counts(
    policy: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = cfg.ConfigOpts()
    monkeypatch.setattr(cfg, "CONF", conf)
    file = tmp_path / "nova.conf"
    file.write_text("[state_policy]\nmode = audit\nretry_after = 7\n")
    conf(["--config-file", str(file)], project="nova")
    settings = deploy.build_settings({"retry_after": "9"})
    assert (settings.mode, settings.retry_after) == ("audit", 9)
    # Overrides are local to the filter.
    assert conf.state_policy.retry_after == 7


def test_an_unparsed_configuration_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conf = cfg.ConfigOpts()
    monkeypatch.setattr(cfg, "CONF", conf)
    assert deploy.build_settings({}).mode == "enforce"
    assert "state_policy" not in conf
    assert "config_file" not in conf


def test_nova_is_not_imported_with_the_module() -> None:
    code = (
        "import sys, state_policy.deploy, state_policy.wsgi;"
        "sys.exit(any(m.split('.')[0] == 'nova' for m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == 0
