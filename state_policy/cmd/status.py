# SPDX-License-Identifier: Apache-2.0
"""``state-policy-status upgrade check``: is this API host ready?

Run it before the compute API is restarted with a new version, a changed
configuration or another Nova.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from state_policy import conf as our_conf
from state_policy import deploy
from state_policy.cmd import config, pipelines
from state_policy.conf import Settings, SettingsError
from state_policy.rules import RulesError

Code = upgradecheck.Code
Result = upgradecheck.Result

#: As an option of ``state-policy``.
_PASTE_FILE = cfg.StrOpt(
    "paste-file",
    metavar="PATH",
    help="Paste file of the compute API, where it is not the one that [wsgi] "
    "api_paste_config names.",
)

#: oslo.middleware's, of which Nova's pipelines have the filter `sizelimit`.
_ACCEPTED = cfg.IntOpt("max_request_body_size", default=114688)

#: What options raise whose values, or whose paste file, are not usable; a
#: file that is not there or must not be read is an OSError.
_UNUSABLE = (SettingsError, cfg.Error, OSError, ValueError)


class Checks(upgradecheck.UpgradeCommands):
    """The checks; each names everything that it finds."""

    display_title = "state_policy: is this API host ready?"

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        super().__init__()
        self._conf = conf

    def configuration(self) -> Result:
        """Whether the options have usable values, those in paste too."""
        try:
            settings = self._settings()
        except _UNUSABLE as error:
            return Result(Code.FAILURE, str(error))
        accepted = self._conf.oslo_middleware.max_request_body_size
        if accepted > settings.max_body:
            return Result(
                Code.FAILURE,
                f"[state_policy] max_body is {settings.max_body}, less than "
                f"[oslo_middleware] max_request_body_size, {accepted}: an "
                "action with a body between them passes by every rule",
            )
        return Result(Code.SUCCESS)

    def rules(self) -> Result:
        """Whether the rules load and ask only for what is there."""
        try:
            settings = self._settings()
        except _UNUSABLE:
            return Result(Code.WARNING, "not looked at: no configuration")
        names = deploy.effect_names(settings)
        try:
            deploy.build_store(settings, names)
            deploy.build_shadow(settings, names)
        except RulesError as error:
            return _failure(error.faults)
        if not settings.policy_file.is_file():
            return Result(
                Code.WARNING,
                f"no file {settings.policy_file}: everything is allowed",
            )
        return Result(Code.SUCCESS)

    def paste(self) -> Result:
        """Whether the filter stands in every pipeline to the API."""
        path = self._paste_path()
        if path is None:
            return Result(Code.FAILURE, "api-paste.ini is not found")
        try:
            faults = [*pipelines.read(path).faults()]
        except (OSError, ValueError) as error:
            faults = [str(error)]
        if faults:
            return _failure(f"{path}: {fault}" for fault in faults)
        return Result(Code.SUCCESS)

    def names_of_nova(self) -> Result:
        """Whether Nova has the private names that the driver leans on."""
        try:
            driver = importlib.import_module("state_policy.drivers.nova.names")
            found = driver.differences()
        except ImportError as error:
            return Result(Code.FAILURE, f"Nova cannot be imported: {error}")
        said = [
            f"{name.module} {name.path}: {reason}"
            + (f" (without it: no {name.feature})" if name.feature else "")
            for name, reason in found
        ]
        if any(name.feature is None for name, _ in found):
            return _failure(said)
        if said:
            return Result(Code.WARNING, "; ".join(said))
        return Result(Code.SUCCESS)

    def _settings(self) -> Settings:
        settings = Settings.from_conf(self._conf)
        path = self._paste_path()
        if path is None:
            return settings
        return pipelines.read(path).settings(settings.with_overrides)

    def _paste_path(self) -> Path | None:
        if self._conf.paste_file is not None:
            return Path(self._conf.paste_file)
        return config.find_paste(self._conf)

    # oslo.upgradecheck wants plain functions here.
    _upgrade_checks: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("Configuration", configuration),
        ("Rules", rules),
        ("Filter in api-paste.ini", paste),
        ("Names of Nova", names_of_nova),
    )


def _failure(faults: Iterable[object]) -> Result:
    return Result(Code.FAILURE, "; ".join(str(fault) for fault in faults))


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``state-policy-status``.

    :param argv: arguments without the program's name; those of the process
        when not given
    :returns: 0 ready, 1 warnings, 2 failures, 255 the check itself failed
    """
    os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"
    conf = cfg.ConfigOpts()
    our_conf.register_opts(conf)
    conf.register_cli_opt(_PASTE_FILE)
    config.register_paste(conf)
    conf.register_opt(_ACCEPTED, group="oslo_middleware")
    try:
        return upgradecheck.main(
            conf,
            project="nova",
            upgrade_command=Checks(conf),
            argv=list(sys.argv[1:] if argv is None else argv),
        )
    except cfg.Error as error:
        sys.stderr.write(f"state-policy-status: {error}\n")
        return 255
