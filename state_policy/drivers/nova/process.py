# SPDX-License-Identifier: Apache-2.0
"""Makes Nova usable in a process that is not one of Nova's own."""

from __future__ import annotations

from collections.abc import Sequence

from nova import config, objects
from oslo_log import log as logging


def start(arguments: Sequence[str]) -> None:
    """Read Nova's configuration, open its databases and its message bus.

    :param arguments: ``--config-file`` and ``--config-dir`` with their
        values; none: where Nova looks by itself
    """
    config.parse_args(["state-policy", *arguments], prog="nova")
    if not (config.CONF.log_file or config.CONF.log_dir):
        # oslo.log would write to standard output, among the tables.
        config.CONF.set_override("use_stderr", True)
    logging.setup(config.CONF, "nova")
    objects.register_all()
