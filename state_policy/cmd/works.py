# SPDX-License-Identifier: Apache-2.0
"""What the commands of the quarantine work with: an API host's Nova.

Whoever looks at a server in quarantine, releases or purges it needs no rules,
and must not be kept from it by what is wrong with them. The sweep asks them,
and goes on without where they cannot be asked.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from state_policy import deploy
from state_policy.cmd import config, exits
from state_policy.conf.settings import QuarantineSettings, Settings
from state_policy.engine.ports.moving import Mover
from state_policy.engine.ports.reading import Reader
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import RulesError


@dataclass(frozen=True, slots=True)
class Works:
    """What every command of the quarantine works with."""

    mover: Mover
    driver: deploy.Driver
    settings: Settings

    @property
    def policy(self) -> QuarantineSettings:
        """Return the options of the quarantine."""
        return self.settings.quarantine


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that the sweep asks.

    :ivar rules: None where none is asked: the filter is switched off, or
        they are not usable
    :ivar reader: reads facts, those of third parties' kinds included; None
        without rules
    :ivar faults: what is wrong, a line each
    """

    rules: RuleSet | None = None
    reader: Reader | None = None
    faults: tuple[str, ...] = ()


def open_works(options: argparse.Namespace) -> Works:
    """Read the configuration of the API host and make what it names.

    :raises CommandError: where it is not usable
    """
    process = importlib.import_module("state_policy.drivers.nova.process")
    process.start(config.arguments(options))
    build = functools.partial(deploy.build_settings, rules=False)
    try:
        settings = config.settings(options, cfg.CONF, build)
        if not settings.quarantine.enabled:
            raise exits.CommandError(
                "[state_policy_quarantine] enabled is false", exits.USAGE
            )
        driver = deploy.build_driver(settings)
    except deploy.DeployError as error:
        raise exits.CommandError(str(error), exits.USAGE) from error
    if driver.mover is None:
        raise exits.CommandError(
            f"driver `{settings.driver}` cannot move servers", exits.USAGE
        )
    return Works(driver.mover, driver, settings)


def open_rules(works: Works) -> Rules:
    """Read the rules, or say why they cannot be asked."""
    settings = works.settings
    off, faults = _switched_off(settings.disable_by_file_path)
    if off:
        return Rules()
    if settings.lacking:
        return _unusable(faults, settings.lacking)
    try:
        reader = deploy.build_reader(works.driver)
        store = deploy.build_store(settings, deploy.effect_names(settings))
    except RulesError as error:
        return _unusable(faults, error.faults)
    return Rules(store.current(), reader, faults)


def _unusable(known: tuple[str, ...], faults: Iterable[object]) -> Rules:
    more = (f"no rule is asked: {fault}" for fault in faults)
    return Rules(faults=(*known, *more))


def _switched_off(switch: Path | None) -> tuple[bool, tuple[str, ...]]:
    """Return whether decisions are off, and what is wrong with the switch.

    As in a request: what cannot be looked at is no switch.
    """
    if switch is None:
        return False, ()
    try:
        os.stat(switch)
    except (FileNotFoundError, NotADirectoryError):
        return False, ()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return False, (
            f"[state_policy] disable_by_file_path: `{switch}` cannot be "
            f"looked at and counts as absent: {reason}",
        )
    return True, ()
