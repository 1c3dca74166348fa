# SPDX-License-Identifier: Apache-2.0
"""What a rule may look at, and the three values a fact can have.

A fact is known by a key, the name of the kind that looks at it
(``server.vm_state``), with a parameter where the kind has one
(``project.deletes:10m``). In a mapping of facts

* a key with a value: that is the value;
* a key with ``None``: there is no value (no task, no host yet);
* no key: the fact was not read, or could not be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Facts by key. Values are str, bool, int, Age, None; for sets of names a
#: frozenset of str (``server.metadata`` is one, of ``key=value``); for
#: ``caller`` the credentials (see CALLER). A decision has a ``Part`` in place
#: of a set of which not all may be written down.
Facts = Mapping[str, Any]


class _Unread:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNREAD"


#: Stands for a fact that is not in the mapping: ``facts.get(key, UNREAD)``.
UNREAD: Final = _Unread()

#: The caller's credentials: oslo.policy's keys as Nova's
#: ``RequestContext.to_policy_values()`` gives them, and under ``target`` the
#: server's own ``project_id`` and ``user_id`` where they are known.
CALLER: Final = "caller"


@dataclass(frozen=True, slots=True, order=True)
class Age:
    """A span of time.

    :ivar seconds: its length in seconds
    :ivar exact: False where only a lower bound is known; it can prove that an
        age is at least something, never that it is less
    """

    seconds: float
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """What is written down of a set: whether it has what a rule names.

    What else people keep in their metadata and tags is nobody's business.

    :ivar has: the names that are in the set
    :ivar lacks: those that are not
    :ivar others: whether the set has members that are not named
    """

    has: frozenset[str]
    lacks: frozenset[str]
    others: bool

    def __bool__(self) -> bool:
        """Return whether the set has any member."""
        return bool(self.has) or self.others


def single(value: Any) -> bool:
    """Return whether a value has no members: it is told whole or not."""
    return value is None or isinstance(value, str | int | float | Age)


def part(value: Any, names: frozenset[str]) -> frozenset[str] | Part:
    """Return what may be written down of a value that has members.

    :param value: a set of names, a mapping, of which the keys count, or
        anything else of a third party's making, of which nothing is told
    :param names: those that rules name
    :returns: a set itself where all its members are named
    """
    try:
        members = frozenset(value)
    except Exception:  # noqa: BLE001
        # A kind of a third party may read anything.
        return Part(frozenset(), names, True)
    has = members & names
    if has == members and not isinstance(value, Mapping):
        return members
    return Part(has, names - has, has != members)
