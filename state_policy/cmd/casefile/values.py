# SPDX-License-Identifier: Apache-2.0
"""Values of facts as case files and command lines write them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from state_policy.engine.facts import Age
from state_policy.engine.states import POWER_NUMBERS
from state_policy.rules.faults import nearest, shown
from state_policy.rules.kinds import Kind, installed, matches, names, numbers
from state_policy.rules.kinds.caller import KEYS

#: The project and user that a caller has unless told otherwise, and those
#: of a server that is not the caller's.
PROJECT, USER = "project-1", "user-1"
OTHER_PROJECT, OTHER_USER = "project-2", "user-2"

NONE = "none"


def fact(key: str, value: Any) -> tuple[str, Any]:
    """Return the key and the value of a fact.

    :param key: a kind without ``server.``, or whole
    :param value: as YAML has it; ``none`` for no value
    :raises ValueError: with the reason
    """
    full, kind = _kind(key)
    if value is None:
        raise ValueError(
            f"{shown(key)} is empty: write `none` for no value, or leave it "
            "out for a fact that was not read"
        )
    if value == NONE:
        return full, None
    return full, _reader(kind)(kind, value)


def _kind(key: str) -> tuple[str, type[Kind]]:
    """Return the key of a fact and its kind."""
    kinds = installed()
    for full in (key, f"server.{key}"):
        found = kinds.get(full)
        if found is not None:
            if getattr(found, "windowed", False):
                raise ValueError(
                    f"{shown(key)} lacks a window of time, as in `{full}:10m`"
                )
            return full, found
        name, colon, window = full.rpartition(":")
        found = kinds.get(name)
        if colon and found is not None and getattr(found, "windowed", False):
            matches.duration(window)
            return full, found
    known = [name.removeprefix("server.") for name in kinds]
    raise ValueError(f"unknown fact {shown(key)}{nearest(key, known)}")


def _reader(kind: type[Kind]) -> Callable[[Any, Any], Any]:
    for base, reader in _READERS:
        if issubclass(kind, base):
            return reader
    return lambda kind, value: value


def age(value: Any) -> Age:
    """Return an age: ``61m``, a number of seconds, or ``>=61m``.

    The last is a lower bound: no more is known.
    """
    if isinstance(value, bool):
        raise ValueError(f"{shown(str(value))} is no span of time")
    if isinstance(value, int | float):
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{shown(str(value))} is no span of time")
        return Age(float(value))
    text = str(value)
    exact = not text.startswith(">=")
    text = text.removeprefix(">=")
    if text.isdecimal():
        return Age(float(text), exact)
    return Age(float(matches.duration(text)), exact)


def _age(kind: Any, value: Any) -> Age:
    return age(value)


def _count(kind: Any, value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError(f"{shown(str(value))} is no whole number")
    return int(value)


def _flag(kind: Any, value: Any) -> bool:
    found = {"true": True, "false": False}.get(str(value).lower())
    if found is None:
        raise ValueError(f"{shown(str(value))} is neither true nor false")
    return found


def _choice(kind: Any, value: Any) -> Any:
    if isinstance(value, list):
        return frozenset(str(item) for item in value)
    if value in POWER_NUMBERS and "running" in kind.values:
        return POWER_NUMBERS[value]
    text = str(value)
    return matches.known(text, kind.values, kind.noun) if kind.values else text


def _members(kind: Any, value: Any) -> frozenset[str] | None:
    if isinstance(value, Mapping):
        items = [f"{key}={item}" for key, item in value.items()]
    elif isinstance(value, list):
        items = [str(item) for item in value]
    else:
        items = str(value).split(",")
    for item in items:
        # As in rules, `any` is one of them, whichever.
        if kind.values and item != matches.ANY:
            matches.known(item, kind.values, kind.noun)
    return frozenset(items) or None


_READERS: tuple[tuple[type[Kind], Callable[[Any, Any], Any]], ...] = (
    (numbers.Span, _age),
    (numbers.Count, _count),
    (names.Flag, _flag),
    (names.Choice, _choice),
    (names.Members, _members),
)


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """Return ``KEY=VALUE`` arguments as a mapping.

    :raises ValueError: for a text that is none
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            raise ValueError(f"{shown(text)} is not KEY=VALUE")
        found[key] = value
    return found


def caller(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the credentials of a caller.

    :param given: ``roles``, ``owner`` (whether the server is his, which is
        so unless told otherwise), and any credential
    :raises ValueError: with the reason
    """
    for key in given:
        if key != "owner" and key not in KEYS:
            hint = nearest(str(key), ("owner", *KEYS))
            raise ValueError(f"unknown credential {shown(str(key))}{hint}")
    roles = given.get("roles", ["member"])
    if not isinstance(roles, list):
        raise ValueError("`roles` is a list, as in `[member]`")
    owner = _flag(None, given.get("owner", True))
    found: dict[str, Any] = {
        "project_id": PROJECT,
        "user_id": USER,
        "is_admin": "admin" in roles,
        **{key: value for key, value in given.items() if key != "owner"},
        "roles": [str(role) for role in roles],
    }
    found["target"] = {
        "project_id": found["project_id"] if owner else OTHER_PROJECT,
        "user_id": found["user_id"] if owner else OTHER_USER,
    }
    return found
