# SPDX-License-Identifier: Apache-2.0
"""Which names rules may have, and what a wrong one was meant to be."""

from __future__ import annotations

from collections.abc import Collection

from state_policy.engine import operations
from state_policy.rules import defaults, spelling
from state_policy.rules.faults import invisible, nearest, shown

#: Names with these first parts are the project's.
PREFIXES = ("server", "class", "quarantine")

_KEPT = ("and", "or", "not")


def reason_against(name: str, referred: Collection[str]) -> str:
    """Return why a file may not state a rule of this name, or nothing.

    :param name: the name
    :param referred: the names that a rule which is asked for leads to
    """
    if name in defaults.texts():
        return ""
    first, colon, rest = name.partition(":")
    if colon and first in PREFIXES:
        return _unknown(name, first, rest)
    if name in referred:
        return _unwritable(name)
    return _unwritable(name) or _mistaken(name, first)


def _unknown(name: str, first: str, rest: str) -> str:
    known = defaults.texts()
    if first == "server":
        operation, _, suffix = rest.partition(":")
        found = operations.OPERATIONS.get(operation)
        if found is None:
            hint = nearest(operation, operations.OPERATIONS)
            return f"{shown(name)}: unknown operation{hint}"
        suffixes = operations.suffixes(operation)
        if suffix == "quarantine":
            return (
                f"{shown(name)}: only delete and force_delete can be moved"
                " to quarantine"
            )
        hint = nearest(suffix, suffixes) or ": one of " + ", ".join(suffixes)
        return f"{shown(name)}: unknown suffix{hint}"
    same = [other for other in known if other.startswith(f"{first}:")]
    hint = nearest(name, same) or f": one of {', '.join(same)}"
    return f"unknown rule name {shown(name)}{hint}"


def _unwritable(name: str) -> str:
    """Return why no rule could refer to the name, or nothing."""
    if not name or any(c.isspace() for c in name) or name.lower() in _KEPT:
        return f"{shown(name)}: a rule name is one word"
    if invisible(name):
        unseen = f"U+{ord(invisible(name)):04X}"
        return f"{shown(name)}: {unseen} in a rule name is seen by nobody"
    if set(name) & set("()\"'%"):
        return f"{shown(name)}: no parenthesis, quote or % in a rule name"
    return ""


def _mistaken(name: str, first: str) -> str:
    """Return why a name that no rule refers to is likely an error.

    A rule under a name that nothing asks for does nothing.
    """
    if name == "default":
        return "`default` is oslo.policy's rule for unknown names: none here"
    if first in ("os_compute_api", "compute"):
        return f"{shown(name)} is Nova's: it belongs in Nova's policy file"
    known = spelling.meant(name)
    if not known:
        return ""
    return f"{shown(name)}: no rule refers to it (did you mean `{known}`?)"
