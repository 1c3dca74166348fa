# SPDX-License-Identifier: Apache-2.0
"""``state-policy``: the shell around the commands of ``state_policy.cli``."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any, NoReturn

from cliff import app, commandmanager
from oslo_config import cfg

from state_policy.cmd import config, exits
from state_policy.conf import SettingsError

#: The entry points of the commands.
NAMESPACE = "state_policy.cli"


class Commands(commandmanager.CommandManager):
    """Finds commands without importing them: only one of them will run."""

    def load_commands(self, namespace: str) -> None:
        """Note the commands of a group of entry points.

        :raises CommandError: if two packages bring the same command
        """
        self.group_list.append(namespace)
        for entry in metadata.entry_points(group=namespace):
            name = entry.name.replace("_", " ")
            other = self.commands.get(name)
            if other is not None and other.value != entry.value:
                raise exits.CommandError(
                    f"command `{name}` is there twice: {other.value} and "
                    f"{entry.value}"
                )
            self.commands[name] = entry


class Shell(app.App):
    """The application: options for all commands, errors as exit codes."""

    NAME = "state-policy"

    def __init__(self) -> None:
        super().__init__(
            description="Work with rules of state_policy and with servers in "
            "quarantine. Exit codes: 0 all is well, 1 something was found or "
            "failed, 2 wrong usage or configuration, 3 the rules are invalid.",
            version=metadata.version("state-policy"),
            command_manager=Commands(NAMESPACE),
            deferred_help=True,
        )
        self._failure: BaseException | None = None
        #: Whether the process must end although threads of it hang.
        self.abandon = False

    def build_option_parser(
        self, *args: Any, **kwargs: Any
    ) -> argparse.ArgumentParser:
        """Add the options that every command shares."""
        parser = super().build_option_parser(*args, **kwargs)
        parser.prog = self.NAME
        config.add_arguments(parser)
        return parser

    def interact(self) -> None:
        """Refuse to open a shell of our own: a missing command is an error."""
        self.stderr.write(
            f"{self.NAME}: no command given; `{self.NAME} --help` lists them\n"
        )
        raise SystemExit(exits.USAGE)

    def run_subcommand(self, argv: list[str]) -> int:
        """Run a command and return the exit code of what became of it."""
        result = super().run_subcommand(argv)
        if self._failure is None:
            return result
        return exit_code(self._failure)

    def clean_up(
        self, cmd: Any, result: int, err: BaseException | None
    ) -> None:
        """Remember how a command failed; its text has been written."""
        self._failure = err
        if err is not None and not _expected(err):
            self.LOG.error(
                "unexpected %s; --debug shows where", type(err).__name__
            )


def exit_code(failure: BaseException) -> int:
    """Return the exit code for an exception that ended a command."""
    if isinstance(failure, exits.CommandError):
        return failure.exit_code
    if isinstance(failure, SettingsError | cfg.Error):
        return exits.USAGE
    if _is_rules_error(failure):
        return exits.INVALID_RULES
    if _is_deploy_error(failure):
        return exits.USAGE
    return exits.FINDINGS


def _is_rules_error(failure: BaseException) -> bool:
    # Not imported before it is needed: the rules bring oslo.policy along.
    from state_policy.rules import RulesError

    return isinstance(failure, RulesError)


def _is_deploy_error(failure: BaseException) -> bool:
    from state_policy.deploy import DeployError

    return isinstance(failure, DeployError)


def _expected(failure: BaseException) -> bool:
    """Whether the text of an exception says enough for an operator."""
    return (
        isinstance(
            failure,
            exits.CommandError | SettingsError | cfg.Error | OSError,
        )
        or not isinstance(failure, Exception)
        or _is_rules_error(failure)
        or _is_deploy_error(failure)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``state-policy``.

    :param argv: arguments without the program's name; those of the process
        when not given
    :returns: the exit code
    """
    # Older Nova patches the process with eventlet on import; a command must
    # not be patched.
    os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"
    with _logging_kept(), _any_character(sys.stdout):
        try:
            shell = Shell()
            code = shell.run(list(sys.argv[1:] if argv is None else argv))
        except exits.CommandError as error:
            sys.stderr.write(f"{Shell.NAME}: {error}\n")
            return error.exit_code
        if argv is None and shell.abandon:
            _leave(code)
        return code


def _leave(code: int) -> NoReturn:
    """End the process at once.

    Python and futurist wait at exit for the threads of pools. One that hangs
    in a database would keep the process, and cron would start no other.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    logging.shutdown()
    os._exit(code)


@contextlib.contextmanager
def _any_character(stream: Any) -> Iterator[None]:
    """Let a stream write what its encoding lacks, as an escape.

    Names of files and rules can have any character, and a report must not
    end in the middle where the locale is plain ASCII.
    """
    errors = getattr(stream, "errors", None)
    if errors != "strict" or not hasattr(stream, "reconfigure"):
        yield
        return
    stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        stream.reconfigure(errors=errors)


@contextlib.contextmanager
def _logging_kept() -> Iterator[None]:
    """Take back what cliff does to logging, for callers in process."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
