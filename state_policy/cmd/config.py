# SPDX-License-Identifier: Apache-2.0
"""The configuration a command works with: that of an API host.

The filter takes options from nova.conf and from its section of api-paste.ini,
and so do the commands, or they would do something else than the API.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from oslo_config import cfg

from state_policy import conf as our_conf
from state_policy.cmd import exits, pipelines
from state_policy.conf import Settings

#: Nova's own; without Nova's code our configuration does not know it.
_PASTE = cfg.StrOpt("api_paste_config", default="api-paste.ini")
_WAYS_OUT = (
    "name the API's with --paste-file, or say with --no-paste-file that the "
    "options of nova.conf count alone"
)


class NoSectionError(exits.CommandError):
    """There is no section of the filter to take options from."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; {_WAYS_OUT}", exits.USAGE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which configuration is meant."""
    parser.add_argument(
        "--config-file",
        action="append",
        default=[],
        metavar="PATH",
        help="configuration file of the compute API, nova.conf; may be given "
        "several times (default: where Nova looks for it)",
    )
    parser.add_argument(
        "--config-dir",
        action="append",
        default=[],
        metavar="DIR",
        help="directory with configuration files, read after --config-file; "
        "may be given several times",
    )
    paste = parser.add_mutually_exclusive_group()
    paste.add_argument(
        "--paste-file",
        metavar="PATH",
        help="paste file of the compute API, in which the filter's section "
        "may set options (default: what [wsgi] api_paste_config names, "
        "api-paste.ini, beside the configuration files or where Nova looks "
        "for them)",
    )
    paste.add_argument(
        "--no-paste-file",
        action="store_true",
        help="take the options from the configuration files alone; without "
        "this a command that works in Nova's databases refuses where there "
        "is no paste file, no filter in it, or another one with other "
        "options in each pipeline",
    )


def arguments(options: argparse.Namespace) -> list[str]:
    """Return the chosen files as arguments for oslo.config and for Nova."""
    found: list[str] = []
    for path in options.config_file:
        found += ["--config-file", path]
    for path in options.config_dir:
        found += ["--config-dir", path]
    return found


def load(options: argparse.Namespace) -> cfg.ConfigOpts:
    """Read the configuration, without Nova and its options.

    :raises oslo_config.cfg.Error: for files that are absent or cannot be
        parsed
    """
    conf = cfg.ConfigOpts()
    conf(
        arguments(options),
        project="nova",
        prog="nova",
        usage="state-policy",
    )
    our_conf.register_opts(conf)
    register_paste(conf)
    return conf


def register_paste(conf: cfg.ConfigOpts) -> None:
    """Let a configuration know which paste file is the API's."""
    conf.register_opt(_PASTE, group="wsgi")


def find_paste(conf: cfg.ConfigOpts) -> Path | None:
    """Return the paste file that a configuration names, where it is there."""
    found = conf.find_file(conf.wsgi.api_paste_config)
    return Path(found) if found else None


def settings(
    options: argparse.Namespace,
    conf: cfg.ConfigOpts,
    build: Callable[[Mapping[str, str]], Settings],
) -> Settings:
    """Return the settings as the filter has them in the API.

    Nothing is guessed: a command that acts by other options than the API
    does harm.

    :param conf: knows which paste file is the API's
    :param build: makes settings of the options of the paste file's section
    :raises NoSectionError: where that section is not to be found
    :raises CommandError: where the paste file is not usable
    :raises SettingsError: where the filters of its pipelines differ
    """
    if options.no_paste_file:
        return build({})
    named = options.paste_file
    path = Path(named) if named is not None else find_paste(conf)
    if path is None:
        raise NoSectionError(f"{conf.wsgi.api_paste_config} is not found")
    try:
        found = pipelines.read(path)
    except (OSError, ValueError) as error:
        raise exits.CommandError(f"{path}: {error}", exits.USAGE) from error
    if not found.used():
        raise NoSectionError(f"{path}: no pipeline has the filter")
    return found.settings(build)
