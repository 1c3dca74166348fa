# SPDX-License-Identifier: Apache-2.0
"""The configuration a command works with: that of an API host."""

from __future__ import annotations

import argparse

from oslo_config import cfg

from state_policy import conf as our_conf


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
    return conf
