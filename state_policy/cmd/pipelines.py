# SPDX-License-Identifier: Apache-2.0
"""Where the filter stands in an api-paste.ini."""

from __future__ import annotations

import configparser
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

#: The application of the compute API, the last part of its pipelines.
APPLICATION = "osapi_compute_app_v21"

_NAMES = frozenset(
    {
        ("use", "egg:state-policy#state_policy"),
        ("paste.filter_factory", "state_policy.deploy:filter_factory"),
    }
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One way to the application.

    :ivar section: the section's name in the file
    :ivar key: ``pipeline``, or what the section chooses it by, ``keystone``
    :ivar parts: names of the filters, then the application's
    """

    section: str
    key: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PasteFile:
    """What an api-paste.ini says about the filter.

    :ivar pipelines: those that end in the application of the compute API
    :ivar filters: the sections that are the filter, by the name that
        pipelines use, with the options set there
    """

    pipelines: tuple[Pipeline, ...]
    filters: Mapping[str, Mapping[str, str]]

    def faults(self) -> Iterator[str]:
        """Say what keeps the filter from seeing every request."""
        if not self.pipelines:
            yield f"no pipeline ends in {APPLICATION}"
        if not self.filters:
            yield "no section is the filter"
            return
        for pipeline in self.pipelines:
            found = [part for part in pipeline.parts if part in self.filters]
            where = f"[{pipeline.section}] {pipeline.key}"
            if not found:
                yield f"{where} is without the filter"
            elif len(found) > 1:
                yield f"{where} has the filter twice"
            elif pipeline.parts[-2] != found[0]:
                yield (
                    f"{where} has the filter not directly before {APPLICATION}"
                )


def read(path: Path) -> PasteFile:
    """Read a paste file.

    :raises ValueError: if it cannot be parsed
    :raises OSError: if it cannot be read
    """
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        parser.read_string(path.read_text(), str(path))
    except configparser.Error as error:
        raise ValueError(" ".join(str(error).split())) from error
    return PasteFile(
        tuple(_pipelines(parser)),
        {
            section.partition(":")[2].strip(): _options(parser, section)
            for section in parser.sections()
            if section.startswith("filter:") and _is_ours(parser, section)
        },
    )


def _pipelines(parser: configparser.RawConfigParser) -> Iterator[Pipeline]:
    for section in parser.sections():
        if not section.startswith(("composite:", "pipeline:")):
            continue
        for key, text in parser.items(section):
            parts = tuple(text.split())
            if len(parts) > 1 and parts[-1] == APPLICATION:
                yield Pipeline(section, key, parts)


def _is_ours(parser: configparser.RawConfigParser, section: str) -> bool:
    return any(
        parser.get(section, key, fallback="").strip() == value
        for key, value in _NAMES
    )


def _options(
    parser: configparser.RawConfigParser, section: str
) -> dict[str, str]:
    named = {key for key, _ in _NAMES} | {*parser.defaults()}
    return {
        key: value for key, value in parser.items(section) if key not in named
    }
