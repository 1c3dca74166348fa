# SPDX-License-Identifier: Apache-2.0
"""Our options in the configuration of the compute API.

Nothing here is global: the configuration is passed in, and what the filter
works with are the frozen :class:`Settings`.
"""

from __future__ import annotations

from oslo_config import cfg

from state_policy.conf import filter as filter_conf
from state_policy.conf import quarantine as quarantine_conf
from state_policy.conf._values import SettingsError
from state_policy.conf.settings import QuarantineSettings, Settings

__all__ = [
    "QuarantineSettings",
    "Settings",
    "SettingsError",
    "list_opts",
    "register_opts",
]

_GROUPS = (filter_conf, quarantine_conf)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make our options known; may be called on a parsed configuration."""
    for module in _GROUPS:
        conf.register_group(module.GROUP)
        conf.register_opts(module.OPTIONS, group=module.GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return our options by group, for the tools of oslo.config."""
    return [(module.GROUP, list(module.OPTIONS)) for module in _GROUPS]
