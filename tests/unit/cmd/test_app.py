# SPDX-License-Identifier: Apache-2.0
"""The shell of ``state-policy``: exit codes and what is written."""

from __future__ import annotations

import os
from importlib import metadata

import pytest
from cliff import command
from oslo_config import cfg

from state_policy.cmd import app, exits
from state_policy.conf import SettingsError
from state_policy.deploy import DeployError
from state_policy.rules import Fault, RulesError


@pytest.fixture
def ends_with(monkeypatch):
    """Return a function that runs a command which raises or returns."""
    build = app.Shell.__init__

    def run(outcome, *options):
        class Probe(command.Command):
            """Ends as the test wants it."""

            def take_action(self, parsed_args):
                if isinstance(outcome, BaseException):
                    raise outcome
                return outcome

        def with_probe(self):
            build(self)
            self.command_manager.add_command("probe", Probe)

        monkeypatch.setattr(app.Shell, "__init__", with_probe)
        return app.main([*options, "probe"])

    return run


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (None, exits.FINE),
        (exits.FINDINGS, exits.FINDINGS),
        (exits.CommandError("no such server"), exits.FINDINGS),
        (exits.CommandError("no file", exits.USAGE), exits.USAGE),
        (SettingsError(["[state_policy] mode: no"]), exits.USAGE),
        (cfg.ConfigFilesNotFoundError(["gone.conf"]), exits.USAGE),
        (
            RulesError([Fault("rules.yaml", 3, "unknown kind `x`")]),
            exits.INVALID_RULES,
        ),
        (DeployError(["driver `x`: is not installed"]), exits.USAGE),
        (KeyError("oops"), exits.FINDINGS),
    ],
)
def test_exit_codes(ends_with, outcome, code):
    assert ends_with(outcome) == code


def test_rules_error_says_file_line_and_reason(ends_with, capsys):
    fault = Fault("rules.yaml", 3, "unknown kind `x`")
    assert ends_with(RulesError([fault])) == exits.INVALID_RULES
    written = capsys.readouterr().err
    assert "rules.yaml:3: unknown kind `x`" in written
    assert "unexpected" not in written


def test_no_traceback_unless_asked_for(ends_with, capsys):
    ends_with(KeyError("oops"))
    written = capsys.readouterr().err
    assert "Traceback" not in written
    assert "unexpected KeyError" in written
    ends_with(KeyError("oops"), "--debug")
    assert "Traceback" in capsys.readouterr().err


def test_a_command_is_needed(capsys):
    with pytest.raises(SystemExit) as caught:
        app.main([])
    assert caught.value.code == exits.USAGE
    assert "no command given" in capsys.readouterr().err


def test_an_unknown_command_is_wrong_usage(capsys):
    assert app.main(["nonsense"]) == exits.USAGE


def test_an_unknown_option_of_a_command_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        app.main(["complete", "--nonsense"])
    assert caught.value.code == exits.USAGE


def test_commands_run_without_patching(monkeypatch):
    monkeypatch.setenv("OS_NOVA_DISABLE_EVENTLET_PATCHING", "false")
    app.main(["nonsense"])
    assert os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] == "true"


def test_every_command_can_be_loaded_and_describes_itself():
    entries = metadata.entry_points(group=app.NAMESPACE)
    assert len(entries) >= 11
    for entry in entries:
        found = entry.load()
        assert issubclass(found, command.Command), entry.name
        assert (found.__doc__ or "").strip(), entry.name


def test_two_packages_may_not_bring_the_same_command(monkeypatch):
    twice = [
        metadata.EntryPoint("check", value, app.NAMESPACE)
        for value in ("a:Check", "b:Check")
    ]
    monkeypatch.setattr(app.metadata, "entry_points", lambda group: twice)
    with pytest.raises(exits.CommandError, match="`check` is there twice"):
        app.Commands(app.NAMESPACE)
