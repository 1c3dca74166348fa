# SPDX-License-Identifier: Apache-2.0
"""The evaluation of the design, written down once more and without wit.

It shares nothing with the engine but the values of facts: a rule is walked
as a tree each time, and what lifts is found by trying every value there is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from state_policy.engine.facts import Age

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AGES = ("server.state_age", "server.age", "server.running_age")
_COUNTS = ("server.attempts", "cloud.stuck", "project.deletes")
_PASSING = {
    *("server.task_state", "server.state_age", "server.age"),
    *("server.running", "server.running_age", "server.attempts"),
    *("server.host_up", "server.cell_up", "server.migration"),
    *("project.deletes:10m", "project.deletes:1h", "cloud.stuck"),
}
_MOVABLE = {"server.vm_state", "server.power_state", "server.locked"}
#: Tasks that leave the vm_state as it is, and those that move a server.
_KEEPING = {
    *("image_snapshot", "image_snapshot_pending", "image_pending_upload"),
    *("image_uploading", "image_backup", "updating_password"),
}
_MOVING = {
    *("scheduling", "block_device_mapping", "networking", "spawning"),
    *("resize_prep", "resize_migrating", "resize_migrated", "resize_finish"),
    *("resize_reverting", "migrating", "rebuilding", "unshelving"),
    *("rebuild_block_device_mapping", "rebuild_spawning", "shelving"),
    *("shelving_image_pending_upload", "shelving_image_uploading"),
    "shelving_offloading",
}
_GROUPS: dict[str, Any] = {
    "building": ("is", "server.vm_state", "building"),
    "busy": ("not", ("is", "server.task_state", "none")),
}

#: Values that a fact can take on: all that random rules name, and others.
DOMAINS: dict[str, list[Any]] = {
    "server.vm_state": [
        *("building", "active", "error", "resized"),
        *("paused", "deleted"),
    ],
    "server.task_state": [
        *(None, "spawning", "deleting", "scheduling", "image_uploading"),
        *("rebooting", "networking"),
    ],
    "server.locked": [True, False],
    "server.host_up": [True, False, None],
    "cloud.stuck": [0, 50, 51],
    "server.state_age": [Age(n) for n in (0, 599, 600, 601, 3600, 3601)],
}


def fact_of(kind: str, match: str) -> str:
    if kind == "project.deletes":
        return f"{kind}:{match.partition(':')[0]}"
    return kind if "." in kind else "caller"


def holds(kind: str, match: str, facts: Mapping[str, Any]) -> bool | None:
    """Evaluate one condition."""
    fact = fact_of(kind, match)
    if fact not in facts:
        return None
    value = facts[fact]
    if fact == "caller":
        return _caller(kind, match, value)
    if kind in _AGES and match != "none":
        return _age(match, value)
    if kind in _COUNTS:
        return _compare(match.rpartition(":")[2], value, 1)
    words = match.split(",")
    if value is None:
        return "none" in words
    if isinstance(value, bool):
        return ("true" if value else "false") in words
    if isinstance(value, frozenset):
        names = {unquote(word) for word in words}
        return "any" in words or any(item in names for item in value)
    return value in [unquote(word) for word in words if word != "none"]


def _caller(kind: str, match: str, creds: Mapping[str, Any]) -> bool:
    if kind == "role":
        return match.lower() in [role.lower() for role in creds["roles"]]
    if match.startswith("%("):
        return bool(creds[kind] == creds["target"][kind])
    return str(creds[kind]) == match


def _age(match: str, value: Age | None) -> bool | None:
    if value is None:
        return False
    found = _compare(match, value.seconds, _UNITS[match[-1]])
    if value.exact:
        return found
    # Whatever the age is, it is no less than the bound.
    later = _compare(match, math.inf, _UNITS[match[-1]])
    return found if found == later else None


def _compare(match: str, value: float, unit: int) -> bool:
    sign = match.rstrip("0123456789smhd")
    limit = int(match[len(sign) :].rstrip("smhd")) * unit
    if sign == ">=":
        return value >= limit
    if sign == "<=":
        return value <= limit
    return value > limit if sign == ">" else value < limit


def _in_state(
    facts: Mapping[str, Any], passing: set[str], movable: set[str]
) -> None:
    """Say of vm_state and host_up how they change in the state seen."""
    vm_state, task = facts["server.vm_state"], facts["server.task_state"]
    building = vm_state == "building"
    if building or (task is not None and task not in _KEEPING):
        passing.add("server.vm_state")
    if facts.get("server.host_up", True) is None:
        # Without a host it has no answer until it comes to one.
        if not building and task not in _MOVING:
            passing.discard("server.host_up")
        if vm_state == "shelved_offloaded":
            movable.add("server.host_up")


class Rules:
    """Random rules by name, evaluated naively."""

    def __init__(self, trees: Mapping[str, Any]) -> None:
        self._trees = {**_GROUPS, **trees}

    def value(self, tree: Any, facts: Mapping[str, Any]) -> bool | None:
        """Evaluate a tree with three values."""
        match tree:
            case ("is", kind, match):
                return holds(kind, match, facts)
            case ("rule", name):
                return self.value(self._trees[name], facts)
            case ("not", part):
                found = self.value(part, facts)
                return None if found is None else not found
            case ("and" | "or" as word, parts):
                found = [self.value(part, facts) for part in parts]
                decisive = word == "or"
                if decisive in found:
                    return decisive
                return None if None in found else not decisive
        return bool(tree == ("always",))

    def named(self, name: str, facts: Mapping[str, Any]) -> bool | None:
        """Evaluate a rule of `delete`; a suffix defaults to never."""
        default = ("never",) if name.count(":") > 1 else ("always",)
        return self.value(self._trees.get(name, default), facts)

    def facts(self, tree: Any) -> Iterator[str]:
        """Yield the facts that a tree looks at."""
        match tree:
            case ("is", kind, match):
                yield fact_of(kind, match)
            case ("rule", name):
                yield from self.facts(self._trees[name])
            case ("not", part):
                yield from self.facts(part)
            case ("and" | "or", parts):
                for part in parts:
                    yield from self.facts(part)

    def decide(self, facts: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return verdict, code, Retry-After and whether it is undecided."""
        may = self.named("server:delete", facts)
        if may is False:
            return self._refuse(facts)
        if may is None:
            return ("allow", None, None, True, False)
        if self.named("server:delete:brake", facts):
            return ("brake", 429, 30, False, False)
        evidence = self.named("server:delete:evidence", facts) is True
        for verdict in ("quarantine", "escalate"):
            if self.named(f"server:delete:{verdict}", facts):
                return (verdict, None, None, False, evidence)
        return ("allow", None, None, False, evidence)

    def _refuse(self, facts: Mapping[str, Any]) -> tuple[Any, ...]:
        passing, movable = set(_PASSING), set(_MOVABLE)
        if {"server.vm_state", "server.task_state"} <= facts.keys():
            _in_state(facts, passing, movable)
        seconds = self._seconds(facts, passing)
        if seconds and self.named("server:delete:wait", facts):
            return ("wait", 409, seconds, False, False)
        later = seconds or self._lifted(facts, passing | movable)
        return ("deny", 409 if later else 403, seconds, False, False)

    def _seconds(
        self, facts: Mapping[str, Any], passing: set[str]
    ) -> int | None:
        if self._lifted(facts, passing.difference(_AGES)):
            return 30
        ages = {
            name: facts[name]
            for name in _AGES
            if isinstance(facts.get(name), Age)
        }
        for wait in sorted(
            {
                limit - age.seconds
                for limit in (600, 601, 3600, 3601, 86400, 86401)
                for age in ages.values()
            }
        ):
            grown = {
                name: Age(age.seconds + wait, age.exact)
                for name, age in ages.items()
            }
            if wait > 0 and self._open({**facts, **grown}):
                return int(wait)
        return 30 if self._lifted(facts, passing) else None

    def _lifted(self, facts: Mapping[str, Any], names: set[str]) -> bool:
        """Try every combination of other values of the facts named."""
        tree = self._trees.get("server:delete", ("always",))
        # What was not read may change too, and with it an age start anew.
        varied = names.intersection(self.facts(tree))
        names = varied & facts.keys()
        choices = [
            [facts[name], *self._values(name, facts, varied)] for name in names
        ]
        return any(
            self._open({**facts, **dict(zip(names, values, strict=True))})
            for values in itertools.product(*choices)
        )

    def _values(
        self, name: str, facts: Mapping[str, Any], varied: set[str]
    ) -> Iterator[Any]:
        states_vary = {"server.vm_state", "server.task_state"} & varied
        for value in DOMAINS[name]:
            if name == "server.state_age" and not states_vary:
                if value.seconds > facts[name].seconds:
                    yield value
            else:
                yield value

    def _open(self, facts: Mapping[str, Any]) -> bool:
        return self.named("server:delete", facts) is not False
