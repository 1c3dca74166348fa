# SPDX-License-Identifier: Apache-2.0
"""The configuration a command works with: that of an API host.

The filter takes options from nova.conf and from its section of api-paste.ini,
and so do the commands, or they would do something else than the API.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from oslo_config import cfg

from state_policy import conf as our_conf
from state_policy.cmd import exits, pipelines
from state_policy.conf import Settings

#: Nova's own; without Nova's code our configuration does not know it.
_PASTE = cfg.StrOpt("api_paste_config", default="api-paste.ini")


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
        "this the same happens where there is no paste file, or no filter in "
        "it, and each command says so",
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

    Where no section of the filter is found, the options of nova.conf count
    alone, and it is said: a host on which no API runs may have no paste file.

    :param conf: knows which paste file is the API's
    :param build: makes settings of the options of the paste file's section
    :raises CommandError: where the paste file is not usable, or it was named
        and no pipeline in it has the filter
    :raises SettingsError: where the filters of its pipelines differ: which of
        them is meant, nothing says
    """
    if options.no_paste_file:
        return build({})
    named = options.paste_file
    path = Path(named) if named is not None else find_paste(conf)
    if path is None:
        return _alone(build, f"{conf.wsgi.api_paste_config} is not found")
    try:
        found = pipelines.read(path)
    except (OSError, ValueError) as error:
        raise exits.CommandError(f"{path}: {error}", exits.USAGE) from error
    if found.used():
        return found.settings(build)
    reason = f"{path}: no pipeline has the filter"
    if named is not None:
        raise exits.CommandError(reason, exits.USAGE)
    return _alone(build, reason)


def _alone(
    build: Callable[[Mapping[str, str]], Settings], reason: str
) -> Settings:
    """Return the settings of nova.conf, and say why."""
    sys.stderr.write(
        f"options of nova.conf count alone: {reason}; name the API's with "
        "--paste-file, or confirm with --no-paste-file\n"
    )
    return build({})
