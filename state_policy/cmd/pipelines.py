# SPDX-License-Identifier: Apache-2.0
"""Where the filter stands in an api-paste.ini, and the options it has there.

The file is read by paste's own code, as the API reads it: with ``%(here)s``,
``[DEFAULT]``, ``set``, ``get`` and ``use`` of another section.
"""

from __future__ import annotations

import configparser
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from state_policy.conf import Settings, SettingsError
from state_policy.conf.settings import PREFIX

#: The application of the compute API, the last part of its pipelines.
APPLICATION = "osapi_compute_app_v21"

_NAMES = frozenset(
    {
        ("use", "egg:state-policy#state_policy"),
        ("use", "egg:state_policy#state_policy"),
        ("use", "call:state_policy.deploy:filter_factory"),
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

    path: Path
    pipelines: tuple[Pipeline, ...]
    filters: Mapping[str, Mapping[str, str]]

    def used(self) -> tuple[str, ...]:
        """Return the names of the filters that stand in a pipeline.

        Sections that no pipeline names are built by nobody.
        """
        parts = (part for found in self.pipelines for part in found.parts)
        return tuple(dict.fromkeys(p for p in parts if p in self.filters))

    def settings(
        self, build: Callable[[Mapping[str, str]], Settings]
    ) -> Settings:
        """Return the settings of the filter in every pipeline.

        They are compared as the filters have them, so what one section says
        and the other leaves to nova.conf may be the same.

        :param build: makes settings of the options of a section
        :raises SettingsError: where pipelines have different ones: which of
            them is meant, nothing says
        """
        names = self.used()
        if not names:
            return build({})
        first, *others = (build(self.filters[name]) for name in names)
        differing = {name for one in others for name in _differ(first, one)}
        if differing:
            raise SettingsError(
                [
                    f"{self.path}: the filters {_quoted(names)} of its "
                    f"pipelines differ in {_quoted(sorted(differing))}; they "
                    "must be the same"
                ]
            )
        return first

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

    :raises ValueError: if it cannot be parsed, or the API could not be
        started with the filter's sections in it
    :raises OSError: if it cannot be read
    """
    # What brings paste along is not for commands that read no such file.
    from paste.deploy import loadwsgi

    try:
        loader = loadwsgi.ConfigLoader(str(path))
        parser: configparser.ConfigParser = loader.parser
        names = [
            section.partition(":")[2].strip()
            for section in parser.sections()
            if section.startswith("filter:") and _is_ours(parser, section)
        ]
        return PasteFile(
            path,
            tuple(_pipelines(parser)),
            {
                name: loader.get_context(loadwsgi.FILTER, name).local_conf
                for name in names
            },
        )
    except (configparser.Error, LookupError, ImportError) as error:
        raise ValueError(" ".join(str(error).split())) from error


def _pipelines(parser: configparser.ConfigParser) -> Iterator[Pipeline]:
    for section in parser.sections():
        if not section.startswith(("composite:", "pipeline:")):
            continue
        for key, text in parser.items(section):
            parts = tuple(text.split())
            if len(parts) > 1 and parts[-1] == APPLICATION:
                yield Pipeline(section, key, parts)


def _is_ours(
    parser: configparser.ConfigParser, section: str, deep: int = 0
) -> bool:
    """Whether a section is the filter, or another one that is, by ``use``."""
    found = {
        (key, parser.get(section, key, raw=True, fallback="").strip())
        for key, _ in _NAMES
    }
    if found & _NAMES:
        return True
    other = f"filter:{dict(found)['use']}"
    return (
        # A section that uses itself ends somewhere: the API tells it.
        deep < len(parser.sections())
        and parser.has_section(other)
        and _is_ours(parser, other, deep + 1)
    )


def _differ(one: Settings, other: Settings) -> Iterator[str]:
    """Yield the options in which settings differ, as a section names them."""
    yield from _unequal(one, other, "quarantine")
    for name in _unequal(one.quarantine, other.quarantine):
        yield PREFIX + name


def _unequal(one: Any, other: Any, *but: str) -> Iterator[str]:
    for field in fields(one):
        if not field.compare or field.name in but:
            continue
        if getattr(one, field.name) != getattr(other, field.name):
            yield field.name


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
