# SPDX-License-Identifier: Apache-2.0
"""The options' values as frozen objects, checked against each other.

Reading an option of a configuration that is reloaded in place may fail at any
later time, so the values are copied once. Options given in the paste file are
kept here and never written into the configuration of the process.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from oslo_config import cfg

from state_policy.conf import filter as filter_conf
from state_policy.conf import quarantine as quarantine_conf
from state_policy.conf._values import SettingsError, parse, read
from state_policy.rules.files import absent

#: Where a relative path is looked for last.
_HOME = Path("/etc/state_policy")
#: What the paste file puts before an option of the quarantine's group.
PREFIX = "quarantine_"

#: Options whose files must exist where somebody chose them.
_MUST_EXIST = ("policy_file", "policy_dirs")

#: What the compute API's own routes take for the id of a project (Nova 34,
#: ``nova.api.openstack.ProjectMapper``). A name seldom looks like one.
_PROJECT_ID = re.compile(r"[0-9a-f-]+")

_FILTER = filter_conf.GROUP.name
_QUARANTINE = quarantine_conf.GROUP.name


@dataclass(frozen=True, slots=True)
class QuarantineSettings:
    """Values of ``[state_policy_quarantine]``; times in seconds."""

    enabled: bool = False
    projects: tuple[str, ...] = ()
    user: str | None = None
    on_full: str = "plain_delete"
    on_volumes: str = "plain_delete"
    on_ports: str = "release"
    retention: int = 1209600
    deadline: int = 43200
    max_per_hour: int = 100
    excluded_projects: tuple[str, ...] = ()
    request_budget: float = 2.5
    settle_after: int = 60


_S = TypeVar("_S", bound="Settings")


@dataclass(frozen=True, slots=True)
class Settings:
    """Values of ``[state_policy]``; times in seconds.

    :ivar policy_file: where the rules are, or would be: the default file may
        be absent
    :ivar policy_dirs: directories with further rules; the default one may be
        absent
    :ivar quarantine: those of ``[state_policy_quarantine]``
    :ivar search: directories in which relative paths are looked for
    :ivar places: of each file and directory with rules, by where it is or
        would be: all the places where it may be, the most wanted first
    :ivar lacking: files and directories with rules that were named and are
        not there, for those who can do without rules
    """

    policy_file: Path = _HOME / "state_policy.yaml"
    policy_dirs: tuple[Path, ...] = (_HOME / "state_policy.d",)
    shadow_policy_file: Path | None = None
    driver: str = "nova"
    mode: str = "enforce"
    on_unknown: str = "allow"
    retry_after: int = 30
    explain: bool = True
    disable_by_file_path: Path | None = None
    max_body: int = 114688
    cell_timeout: float = 5.0
    cell_retry: float = 10.0
    quarantine: QuarantineSettings = field(default_factory=QuarantineSettings)
    search: tuple[Path, ...] = field(default=(_HOME,), repr=False)
    places: Mapping[Path, tuple[Path, ...]] = field(
        default_factory=dict, repr=False, compare=False
    )
    lacking: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, *, rules: bool = True) -> Self:
        """Copy the values of a configuration that knows our options.

        :param rules: whether the files with rules must be there; False:
            those that are not stand in ``lacking``
        :raises SettingsError: for values that are not usable, alone or
            together
        """
        search = _search(conf)
        values = read(conf, _FILTER, filter_conf.OPTIONS)
        named = [name for name in _MUST_EXIST if _named(conf, name)]
        quarantine = QuarantineSettings(
            **read(conf, _QUARANTINE, quarantine_conf.OPTIONS)
        )
        settings = cls(
            **_paths(values, search), quarantine=quarantine, search=search
        )
        return _checked(settings, named, rules)

    def with_overrides(
        self, given: Mapping[str, str], *, rules: bool = True
    ) -> Self:
        """Return these settings with some replaced, as the paste file does.

        :param given: text by option name; options of the quarantine's group
            have the prefix ``quarantine_``
        :param rules: as of ``from_conf``
        :raises SettingsError: for an unknown name and for values that are not
            usable, alone or together
        """
        plain, prefixed, unknown = _sorted_out(given)
        if unknown:
            raise SettingsError(
                f"`{name}` is not an option of the filter" for name in unknown
            )
        values = _paths(
            parse(_FILTER, filter_conf.OPTIONS, plain), self.search
        )
        quarantine = replace(
            self.quarantine,
            **parse(_QUARANTINE, quarantine_conf.OPTIONS, prefixed),
        )
        values["places"] = {**self.places, **values["places"]}
        settings = replace(self, quarantine=quarantine, **values)
        return _checked(settings, plain, rules)


def _sorted_out(
    given: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    own = {option.dest for option in filter_conf.OPTIONS}
    theirs = {PREFIX + option.dest for option in quarantine_conf.OPTIONS}
    plain = {name: given[name] for name in given if name in own}
    prefixed = {
        name.removeprefix(PREFIX): given[name]
        for name in given
        if name in theirs
    }
    return plain, prefixed, sorted(set(given) - own - theirs)


def _named(conf: cfg.ConfigOpts, name: str) -> bool:
    """Whether somebody chose the value of an option.

    oslo.config remembers an override as the place of a value even after the
    override is gone, so a place in the code counts only while the value is
    not the default.
    """
    default = next(
        option.default for option in filter_conf.OPTIONS if option.dest == name
    )
    if conf[_FILTER][name] != default:
        return True
    found = conf.get_location(name, _FILTER)
    return found is not None and found.location.is_user_controlled


def _search(conf: cfg.ConfigOpts) -> tuple[Path, ...]:
    """Return the directories of the configuration in use, then our own."""
    directories = [Path(name) for name in conf.config_dirs]
    files = conf.config_file if "config_file" in conf else None
    directories += [Path(name).parent for name in reversed(files or [])]
    return tuple(dict.fromkeys([*directories, _HOME]))


def _paths(
    values: Mapping[str, Any], search: tuple[Path, ...]
) -> dict[str, Any]:
    """Return the values with paths in place of their texts."""
    found = dict(values)
    for name in ("shadow_policy_file", "disable_by_file_path"):
        # As an empty text in nova.conf reads: beside the configuration files
        # it would be their directory.
        if found.get(name) == "":
            found[name] = None
    places: dict[Path, tuple[Path, ...]] = {}

    def find(text: str) -> Path:
        wanted = _places(text, search)
        there = (place for place in wanted if not absent(place))
        path = next(there, wanted[0])
        places[path] = wanted
        return path

    for name in ("policy_file", "shadow_policy_file"):
        if found.get(name):
            found[name] = find(found[name])
    if "policy_dirs" in found:
        found["policy_dirs"] = tuple(
            find(text) for text in found["policy_dirs"] if text
        )
    found["places"] = places
    if found.get("disable_by_file_path"):
        found["disable_by_file_path"] = Path(found["disable_by_file_path"])
    return found


def _places(text: str, search: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return where a file may be: one that is absolute, in one place."""
    return tuple(dict.fromkeys(directory / text for directory in search))


def _no_directory(path: Path) -> bool:
    """Return whether there is no directory at a path, or behind a link.

    False where that cannot be known: loading the rules tells why.
    """
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False


def _checked(settings: _S, named: Collection[str], rules: bool) -> _S:
    lacking = (*settings.lacking, *_rules_faults(settings, named))
    faults = [*_switch_faults(settings)]
    if rules:
        faults = [*lacking, *_shadow_faults(settings), *faults]
    if settings.quarantine.enabled:
        faults += _quarantine_faults(settings.quarantine)
    if faults:
        raise SettingsError(faults)
    return replace(settings, lacking=lacking)


def _rules_faults(settings: Settings, named: Collection[str]) -> Iterator[str]:
    # What must not be looked at is no file here: os.path does not raise.
    file = settings.policy_file
    if "policy_file" in named and not os.path.isfile(file):
        yield f"[{_FILTER}] policy_file: no file `{file}`"
    for directory in settings.policy_dirs if "policy_dirs" in named else ():
        if _no_directory(directory):
            yield f"[{_FILTER}] policy_dirs: no directory `{directory}`"


def _shadow_faults(settings: Settings) -> Iterator[str]:
    shadow = settings.shadow_policy_file
    if shadow is not None and not os.path.isfile(shadow):
        yield f"[{_FILTER}] shadow_policy_file: no file `{shadow}`"


def _switch_faults(settings: Settings) -> Iterator[str]:
    switch = settings.disable_by_file_path
    if switch is not None and not switch.is_absolute():
        yield (
            f"[{_FILTER}] disable_by_file_path: `{switch}` is not an "
            "absolute path"
        )


def _quarantine_faults(values: QuarantineSettings) -> Iterator[str]:
    def fault(name: str, reason: str) -> str:
        return f"[{_QUARANTINE}] {name}: {reason}"

    if not values.projects:
        yield fault("projects", "must name a project while enabled is true")
    for name in ("projects", "excluded_projects"):
        for project in getattr(values, name):
            if not _PROJECT_ID.fullmatch(project):
                yield fault(
                    name, f"`{project}` is no id of a project, perhaps a name"
                )
    if not values.user:
        yield fault("user", "must be set while enabled is true")
    if len(set(values.projects)) < len(values.projects):
        yield fault("projects", "names a project twice")
    if values.on_full == "next" and len(set(values.projects)) < 2:
        yield fault("on_full", "`next` needs a second project in projects")
    both = sorted(set(values.projects) & set(values.excluded_projects))
    if both:
        yield fault("excluded_projects", f"`{both[0]}` is in projects too")
    if values.retention < values.deadline:
        yield fault(
            "retention",
            f"{values.retention} s is shorter than the deadline of "
            f"{values.deadline} s",
        )
