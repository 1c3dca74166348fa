# SPDX-License-Identifier: Apache-2.0
"""Values of options, read from files or from text, with clear errors."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from oslo_config import cfg

#: oslo.config tells the place and the reason in one text, without the value.
_FROM_FILE = re.compile(
    r"Value for option .* from LocationInfo\(.*detail='(?P<source>.*)'\) "
    r"is not valid: (?P<reason>.*)",
    re.DOTALL,
)


class SettingsError(ValueError):
    """One or more options have no usable value.

    :ivar faults: a line for each, ``[group] option: reason``
    """

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


def read(
    conf: cfg.ConfigOpts, group: str, options: Iterable[cfg.Opt]
) -> dict[str, Any]:
    """Return the values of a group's options by name.

    :raises SettingsError: naming each option whose value is not usable
    """
    return _collect(
        group, options, lambda option: conf[group][option.dest], None
    )


def parse(
    group: str, options: Iterable[cfg.Opt], given: Mapping[str, str]
) -> dict[str, Any]:
    """Return typed values for the options that are given as text.

    :param given: by option name; other names must not be in it
    :raises SettingsError: naming each option whose value is not usable
    """
    asked = [option for option in options if option.dest in given]
    return _collect(
        group,
        asked,
        lambda option: _convert(option, given[option.dest]),
        given,
    )


def _collect(
    group: str,
    options: Iterable[cfg.Opt],
    value: Callable[[cfg.Opt], Any],
    given: Mapping[str, str] | None,
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    faults: list[str] = []
    for option in options:
        try:
            found = value(option)
        except (cfg.Error, ValueError) as error:
            faults.append(_fault(group, option, error, given))
            continue
        values[option.dest] = tuple(found) if _many(option) else found
    if faults:
        raise SettingsError(faults)
    return values


def _convert(option: cfg.Opt, text: str) -> Any:
    if isinstance(option, cfg.MultiStrOpt):
        return [part.strip() for part in text.split(",") if part.strip()]
    return option.type(text.strip())


def _many(option: cfg.Opt) -> bool:
    return isinstance(option, cfg.ListOpt | cfg.MultiStrOpt)


def _fault(
    group: str,
    option: cfg.Opt,
    error: Exception,
    given: Mapping[str, str] | None,
) -> str:
    reason = str(error)
    text = given[option.dest] if given is not None else None
    found = _FROM_FILE.fullmatch(reason)
    if found:
        reason = f"{found['reason']} (in {found['source']})"
        text = _written(found["source"], group, option)
    if text is not None:
        reason = f"`{text}` is not usable: {reason}"
    return f"[{group}] {option.dest}: {reason}"


def _written(source: str, group: str, option: cfg.Opt) -> str | None:
    """Return an option's text as it stands in a file or the environment."""
    if source in os.environ:
        return os.environ[source]
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(source, sections).parse()
    except (cfg.Error, OSError):
        return None
    texts = sections.get(group, {}).get(option.dest)
    return texts[-1] if texts else None
