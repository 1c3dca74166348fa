# SPDX-License-Identifier: Apache-2.0
"""Rule sets as a command line names them: files, directories, presets."""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from cliff import command

from state_policy.cmd import exits
from state_policy.engine.analysis.diagram import TooIntricateError
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import load, sources

#: Before the name of a rule set that comes with the project.
PRESET = "preset:"
#: Before a release, whose default rules are meant.
DEFAULTS = "defaults:"

_DISTRIBUTION = "state-policy"
_SHARED = "etc/state_policy"
_FOLDERS = {PRESET: "presets", DEFAULTS: "defaults"}

HELP = (
    "policy file, directory of policy files, preset:NAME for a rule set that "
    "comes with state_policy, or defaults:RELEASE for a release's defaults"
)


class Command(command.Command):  # type: ignore[misc,unused-ignore]
    """A command that analyses rules, and says where it cannot."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run, as cliff does.

        :raises CommandError: where the rules are too intricate
        """
        try:
            code: int = super().run(parsed_args)
        except TooIntricateError as error:
            raise exits.CommandError(str(error)) from error
        return code


def load_named(
    names: Iterable[str], relative_to: Path | None = None
) -> RuleSet:
    """Return the rule set that names mean together.

    :param names: paths, ``preset:NAME`` or ``defaults:RELEASE``
    :param relative_to: directory that relative paths start from
    :raises RulesError: with every fault of the files
    :raises CommandError: for a preset that does not exist
    """
    return load(expand(names, relative_to))


def expand(
    names: Iterable[str], relative_to: Path | None = None
) -> list[Path]:
    """Return the files that names mean, in their order.

    The names stay as they are written: `..` behind a link leads elsewhere
    than the text says.

    :raises CommandError: for a preset that does not exist, and for no name
    """
    found: list[Path] = []
    for name in names:
        if not name:
            raise exits.CommandError("a file without a name", exits.USAGE)
        prefix = next((p for p in _FOLDERS if name.startswith(p)), None)
        if prefix is not None:
            found.append(_shipped(prefix, name.removeprefix(prefix)))
            continue
        path = (relative_to or Path()) / name
        # A directory with nothing in it is no rule set: loading it tells. So
        # it does of what cannot be looked at.
        inside = sources(None, [path]) if os.path.isdir(path) else []
        found += inside or [path]
    return found


def shipped(prefix: str) -> dict[str, Path]:
    """Return the rule sets that come with the project, by name.

    :param prefix: ``PRESET`` or ``DEFAULTS``
    """
    for folder in _folders(_FOLDERS[prefix]):
        found = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
        if found:
            return found
    return {}


def _shipped(prefix: str, name: str) -> Path:
    known = shipped(prefix)
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, 1)
    hint = f" (did you mean `{close[0]}`?)" if close else ""
    raise exits.CommandError(
        f"unknown {prefix.rstrip(':')} `{name}`{hint}: there are "
        f"{', '.join(known) or 'none'}",
        exits.USAGE,
    )


def _folders(name: str) -> Iterator[Path]:
    """Yield where the data of the project may be, the likeliest first.

    A source tree has it beside the package; an installed wheel puts it under
    the prefix, and the distribution knows where.
    """
    yield Path(__file__).parents[2] / _SHARED / name
    try:
        files = metadata.files(_DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        return
    for file in files:
        if str(file.parent).endswith(f"{_SHARED}/{name}"):
            yield Path(str(file.locate())).resolve().parent
            return
