# SPDX-License-Identifier: Apache-2.0
"""Every kind that rules can use: ours, and those of third parties.

oslo.policy takes whatever an entry point offers, skips what does not load
and lets the last of two win. Here each of these refuses the start.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from state_policy.rules.faults import Fault, RulesError
from state_policy.rules.kinds import caller, promises, server
from state_policy.rules.kinds.base import Kind

#: The kind of a condition that is another rule.
RULE = "rule"

#: The entry point group, oslo.policy's own.
GROUP = "oslo.policy.rule_checks"

#: The kinds that come with the project; its entry points name the same.
BUILTIN: Mapping[str, type[Kind]] = MappingProxyType(
    {
        "server.vm_state": server.VmState,
        "server.task_state": server.TaskState,
        "server.power_state": server.PowerState,
        "server.state_age": server.StateAge,
        "server.age": server.ServerAge,
        "server.running": server.Running,
        "server.running_age": server.RunningAge,
        "server.attempts": server.Attempts,
        "server.launched": server.Launched,
        "server.disable_terminate": server.DisableTerminate,
        "server.locked": server.Locked,
        "server.host_up": server.HostUp,
        "server.cell_up": server.CellUp,
        "server.migration": server.Migration,
        "server.hypervisor": server.Hypervisor,
        "server.host": server.Host,
        "server.az": server.Az,
        "server.aggregate": server.Aggregate,
        "server.flavor": server.Flavor,
        "server.image": server.Image,
        "server.volumes": server.Volumes,
        "server.volume_backed": server.VolumeBacked,
        "server.metadata": server.Metadata,
        "server.tag": server.Tag,
        "project.deletes": server.Deletes,
        "cloud.stuck": server.Stuck,
        "quarantine.age": server.QuarantineAge,
        "quarantine.completed": server.QuarantineCompleted,
    }
)

#: First parts of names that are kept for the project.
RESERVED = frozenset({"server", "project", "cloud", "quarantine"})

#: Conditions that mean what oslo.policy means by them.
OSLO = frozenset({RULE, *caller.KINDS})

_DOT = "has a dot, as in `acme.maintenance`"


def discover(entry_points: Iterable[Any]) -> Mapping[str, type[Kind]]:
    """Return every kind by name.

    :param entry_points: those of ``GROUP``
    :raises RulesError: naming every entry point that is broken, doubled,
        takes a name that is not its own or keeps to no contract
    """
    found: dict[str, type[Kind]] = dict(BUILTIN)
    origin: dict[str, str] = {}
    faults = []
    for point in entry_points:
        if BUILTIN.get(point.name) is not None and _is_ours(point):
            continue
        if point.name in origin:
            other = origin[point.name]
            faults.append(_fault(point, f"the same kind comes from {other}"))
            continue
        if "." in point.name:
            origin[point.name] = f"`{point.value}`{_distribution(point)}"
        kind, reason = _load(point)
        if reason:
            faults.append(_fault(point, reason))
        elif kind is not None:
            found[point.name] = kind
    if faults:
        raise RulesError(sorted(faults))
    return MappingProxyType(found)


@functools.cache
def installed() -> Mapping[str, type[Kind]]:
    """Return every kind of what is installed; read once in a process."""
    return discover(importlib.metadata.entry_points(group=GROUP))


def _is_ours(point: Any) -> bool:
    kind = BUILTIN[point.name]
    return bool(point.value == f"{kind.__module__}:{kind.__qualname__}")


def _load(point: Any) -> tuple[type[Kind] | None, str]:
    """Return the kind of an entry point, or why there is none.

    Neither where the entry point is another project's affair: a check that
    is no ``Kind``, under a name that nobody here knows. oslo.policy would
    prefer it to what else has its name, whatever it is.
    """
    dotted = "." in point.name
    taken = _taken(point.name)
    if taken:
        return None, taken
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - of a plugin
        reason = f"cannot be imported: {type(error).__name__}: {error}"
        return None, reason if dotted else ""
    if not (isinstance(loaded, type) and issubclass(loaded, Kind)):
        return None, ""
    return loaded, reason_against(point.name, loaded)


def reason_against(name: str, kind: type[Kind]) -> str:
    """Return why a third party's kind may not have a name, or nothing."""
    if BUILTIN.get(name) is kind:
        return ""
    taken = _taken(name)
    if taken:
        return taken
    first, dot, rest = name.partition(".")
    if not (dot and first and rest) or ":" in name:
        return f"the name of a kind {_DOT}"
    return promises.of_class(kind, BUILTIN)


def _taken(name: str) -> str:
    """Return why nobody else may offer anything under a name, or nothing."""
    if name in BUILTIN:
        return f"takes the name of the kind `{name}` of this project"
    if name in OSLO:
        return (
            f"takes the name of a condition of oslo.policy's own; that of a"
            f" kind {_DOT}"
        )
    first, dot, _ = name.partition(".")
    if dot and first in RESERVED:
        return f"names that start with `{first}.` are kept for this project"
    return ""


def _distribution(point: Any) -> str:
    found = getattr(point, "dist", None)
    return f" of {found.name}" if found is not None else ""


def _fault(point: Any, reason: str) -> Fault:
    reason = " ".join(reason.split())
    return Fault(f"kind {point.name}{_distribution(point)}", 0, reason)
