# SPDX-License-Identifier: Apache-2.0
"""What a sweep does while rules are not enforced, or are switched off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from state_policy import conf, deploy, rules
from state_policy.cmd import app
from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.engine.ports.moving import Pending, PendingDelete
from state_policy.engine.ruleset import RuleSet
from state_policy.quarantine import sweep
from state_policy.quarantine.conceal import Wish, conceal
from tests.unit.quarantine.memory import (
    KEEPER,
    OWNER,
    START,
    Memory,
    Policy,
)

RULES = """
"server:delete:quarantine": "server.task_state:deleting"
"quarantine:purge": "quarantine.age:>=1d"
"quarantine:release": "quarantine.age:>=2d"
"""


@pytest.fixture
def policy_file(tmp_path: Path) -> Path:
    file = tmp_path / "state_policy.yaml"
    file.write_text(RULES)
    return file


@pytest.fixture
def found_rules(policy_file: Path) -> RuleSet:
    return rules.load([policy_file])


@pytest.fixture
def mover() -> Memory:
    """One server that is settled, and one whose delete has not ended."""
    mover = Memory()
    mover.add("settled")
    wish = Wish("delete", {"project_id": OWNER.project_id}, "req-1")
    conceal(mover, Policy(), "settled", wish)
    assert steps(sweep.Sweep(mover, Policy())) == [("settled", "settle", True)]
    mover.add("deleting", task_state="deleting")
    mover.pending = (
        PendingDelete("deleting", OWNER, OWNER, "delete", "req-2", START),
    )
    return mover


@pytest.fixture
def reader(mover: Memory) -> Driver:
    facts = {"server.vm_state": "active", "server.task_state": "deleting"}
    return Driver(
        [MemoryServer("deleting", OWNER.project_id, facts=facts)], mover=mover
    )


def steps(work: sweep.Sweep) -> list[tuple[str, str, bool]]:
    report = work.run()
    assert [d for d in report.done if d.error] == []
    return [(d.server_id, d.step, d.acted) for d in report.done]


def test_enforced(mover: Memory, reader: Driver, found_rules: RuleSet) -> None:
    mover.pass_time(86400)
    work = sweep.Sweep(mover, Policy(), found_rules, reader)
    assert steps(work) == [
        ("settled", "purge", True),
        ("deleting", "conceal", True),
    ]
    assert mover.row["settled"].deleted
    assert mover.row["deleting"].hidden


@pytest.mark.parametrize(
    ("seconds", "step"), [(86400, "purge"), (172800, "release")]
)
def test_not_enforced(
    mover: Memory,
    reader: Driver,
    found_rules: RuleSet,
    seconds: float,
    step: str,
) -> None:
    """What rules decide is said, every time, and not done."""
    mover.pass_time(seconds)
    before = list(mover.steps)
    work = sweep.Sweep(mover, Policy(), found_rules, reader, enforced=False)
    for _ in range(2):
        assert steps(work) == [
            ("settled", step, False),
            ("deleting", "conceal", False),
        ]
    assert mover.steps == before


def test_not_enforced_options_hold(
    mover: Memory, reader: Driver, found_rules: RuleSet
) -> None:
    """Settling, what was left over, and the retention are no rules' matter."""
    mover.pending = ()
    mover.add("concealed")
    wish = Wish("delete", {"project_id": OWNER.project_id}, "req-3")
    conceal(mover, Policy(), "concealed", wish)
    mover.consumers["concealed"] = OWNER
    work = sweep.Sweep(mover, Policy(), found_rules, reader, enforced=False)
    assert steps(work) == [
        ("concealed", "finish placement", True),
        ("concealed", "settle", True),
    ]
    mover.pass_time(Policy().retention)
    assert [found[1:] for found in steps(work)] == 2 * [("purge", True)]
    assert mover.row["settled"].deleted


def test_dry_run(mover: Memory, reader: Driver, found_rules: RuleSet) -> None:
    mover.pass_time(86400)
    before = list(mover.steps)
    work = sweep.Sweep(mover, Policy(), found_rules, reader, dry_run=True)
    assert {acted for _, _, acted in steps(work)} == {False}
    assert mover.steps == before


class Broken(Memory):
    """A mover that cannot look for deletes that have not ended."""

    def pending_deletes(self, projects: object, older_than: float) -> Pending:
        raise RuntimeError("the API database is gone")


def test_asking_again_fails_alone(
    reader: Driver, found_rules: RuleSet
) -> None:
    mover = Broken()
    mover.add("a")
    wish = Wish("delete", {"project_id": OWNER.project_id}, "req-1")
    conceal(mover, Policy(), "a", wish)
    report = sweep.Sweep(mover, Policy(), found_rules, reader).run()
    assert [(d.server_id, d.step) for d in report.done] == [
        ("a", "settle"),
        ("-", "ask again"),
    ]
    assert report.failed


def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    driver: Driver,
    settings: conf.Settings,
) -> str:
    """Return the table of ``quarantine sweep``."""
    monkeypatch.setattr(deploy, "build_settings", lambda _, **__: settings)
    monkeypatch.setattr(deploy, "build_driver", lambda _: driver)
    with mock.patch("state_policy.drivers.nova.process.start"):
        code = app.main(
            ["--no-paste-file", "quarantine", "sweep", "-f", "csv"]
        )
    assert code == 0
    return capsys.readouterr().out.replace('"', "").replace("\r", "")


def test_the_command_follows_the_mode(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    mover: Memory,
    reader: Driver,
    policy_file: Path,
    tmp_path: Path,
) -> None:
    mover.pass_time(86400)
    switch = tmp_path / "off"
    settings = conf.Settings(
        policy_file=policy_file,
        policy_dirs=(),
        disable_by_file_path=switch,
        quarantine=conf.QuarantineSettings(
            enabled=True, projects=(KEEPER.project_id,), user=KEEPER.user_id
        ),
    )
    switch.touch()
    for mode in ("enforce", "warn", "audit"):
        found = run(monkeypatch, capsys, reader, replace(settings, mode=mode))
        assert found == "ID,Step,Why,Result\n"
    switch.unlink()
    for mode in ("warn", "audit"):
        found = run(monkeypatch, capsys, reader, replace(settings, mode=mode))
        assert found == (
            "ID,Step,Why,Result\n"
            "settled,purge,rule quarantine:purge,not done\n"
            "deleting,conceal,its delete has not ended,not done\n"
        )
    assert not mover.row["settled"].deleted
    assert not mover.row["deleting"].hidden
    found = run(monkeypatch, capsys, reader, settings)
    assert found == (
        "ID,Step,Why,Result\n"
        "settled,purge,rule quarantine:purge,done\n"
        "deleting,conceal,its delete has not ended,done\n"
    )
    assert mover.row["settled"].deleted
    assert mover.row["deleting"].hidden


@pytest.mark.parametrize(("hanging", "left"), [(0, []), (1, [0])])
def test_the_command_waits_for_nothing_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
    mover: Memory,
    reader: Driver,
    policy_file: Path,
    hanging: int,
    left: list[int],
) -> None:
    settings = conf.Settings(
        policy_file=policy_file,
        policy_dirs=(),
        quarantine=conf.QuarantineSettings(
            enabled=True, projects=(KEEPER.project_id,), user=KEEPER.user_id
        ),
    )
    gone: list[int] = []
    monkeypatch.setattr(reader, "hanging", lambda: hanging)
    monkeypatch.setattr(deploy, "build_settings", lambda _, **__: settings)
    monkeypatch.setattr(deploy, "build_driver", lambda _: reader)
    monkeypatch.setattr(app, "_leave", gone.append)
    monkeypatch.setattr(
        "sys.argv", ["state-policy", "--no-paste-file", "quarantine", "list"]
    )
    with mock.patch("state_policy.drivers.nova.process.start"):
        assert app.main() == 0
    assert gone == left
