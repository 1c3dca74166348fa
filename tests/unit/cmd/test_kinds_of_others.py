# SPDX-License-Identifier: Apache-2.0
"""Commands that read a cloud read the facts of third parties' kinds too."""

import argparse
from types import SimpleNamespace

import pytest

from state_policy import deploy, rules
from state_policy.cmd import cloud, works
from state_policy.conf.settings import QuarantineSettings, Settings
from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.engine.literal import Change
from state_policy.rules import reading
from state_policy.rules.kinds import BUILTIN
from state_policy.rules.kinds.names import Flag

SERVER = "0b1e6f0c-9a53-4d5e-8b8e-1f2a3b4c5d6e"
KIND = "acme.maintenance"


class Maintenance(Flag):
    """A fact of its own, read by itself."""

    change = Change.PASSING
    wants = frozenset({"server.host"})

    @classmethod
    def read(cls, key, subject):
        return subject.facts["server.host"] == "c1"


@pytest.fixture
def driver(monkeypatch):
    """Give what the commands find where a third party's kind is installed."""
    kinds = {**BUILTIN, KIND: Maintenance}
    found = Driver(
        [MemoryServer(SERVER, facts={"server.host": "c1"})], mover=object()
    )
    settings = Settings(
        quarantine=QuarantineSettings(enabled=True, projects=("q",), user="k")
    )
    monkeypatch.setattr(reading, "installed", lambda: kinds)
    monkeypatch.setattr(deploy, "build_settings", lambda _, **__: settings)
    monkeypatch.setattr(deploy, "build_driver", lambda settings: found)
    process = SimpleNamespace(start=lambda arguments: None)
    for module in (cloud, works):
        monkeypatch.setattr(
            module,
            "importlib",
            SimpleNamespace(import_module=lambda name: process),
        )
    return found


def of_the_cloud(options):
    return cloud.connect(options).reader


def of_the_sweep(options):
    return works.open_rules(works.open_works(options)).reader


@pytest.mark.parametrize("reader_of", [of_the_cloud, of_the_sweep])
def test_read(driver, reader_of):
    options = argparse.Namespace(
        config_file=[], config_dir=[], no_paste_file=True
    )
    reader = reader_of(options)
    found = reader.locate(SERVER)
    caller = driver.caller_with({"project_id": "p", "user_id": "u"})
    facts = reader.read(caller, found, {KIND})
    assert facts[KIND] is True
    assert "server.host" not in facts


def test_given_on_the_command_line(tmp_path, monkeypatch):
    """The tools that read no cloud take the fact as they take any other."""
    from state_policy.cmd.casefile import values

    kinds = {**BUILTIN, KIND: Maintenance}
    monkeypatch.setattr(values, "installed", lambda: kinds)
    key, value = values.fact(KIND, "true")
    file = tmp_path / "rules.yaml"
    file.write_text(f'"server:stop": "not {KIND}:true"')
    found = rules.load([file], kinds)
    assert found.operations["stop"].may.test({key: value}) is False
    assert found.operations["stop"].may.test({}) is None
