# SPDX-License-Identifier: Apache-2.0
"""Conditions on the caller: oslo.policy's own, no more than Nova fills.

oslo.policy compares any key of the credentials with any text, and one that
is not there is False. Here only keys that Nova's credentials have may be
asked, and only in forms that can be true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from state_policy.engine.facts import CALLER
from state_policy.engine.literal import Change, Literal
from state_policy.rules.faults import shown
from state_policy.rules.kinds import matches

#: Keys of nova.context.RequestContext.to_policy_values(), 34.0.0.
KEYS = (
    "user_id",
    "user_domain_id",
    "system_scope",
    "domain_id",
    "project_id",
    "project_domain_id",
    "is_admin",
    "roles",
    "is_admin_project",
    "service_user_id",
    "service_user_domain_id",
    "service_project_id",
    "service_project_domain_id",
    "service_roles",
)

#: Every kind of condition on the caller.
KINDS = ("role", *KEYS)

#: What stands for the server's own project and user.
TARGETS = {"%(project_id)s": "project_id", "%(user_id)s": "user_id"}

#: What each of these is the id of: another key never equals it.
_OWN = {
    "%(project_id)s": ("project_id", "service_project_id"),
    "%(user_id)s": ("user_id", "service_user_id"),
}

#: As ``state_policy.conf.settings`` judges the id of a project. Ids of users
#: and of domains come from identity drivers too, and can be anything.
_PROJECT_ID = re.compile(r"[0-9a-f-]+")

_BOOLEAN = ("is_admin", "is_admin_project")
#: Kinds whose values have neither patterns nor signs in them.
_CLOSED = ("project_id", "service_project_id", "system_scope", *_BOOLEAN)
_Test = Callable[[Any], bool | None]


def compile_caller(kind: str, match: str) -> Literal:
    """Return the literal of a condition on the caller.

    :param kind: one of ``KINDS``
    :raises ValueError: where it could never be true
    """
    _check(kind, match)
    test = _against_target(kind, match) or _against_text(kind, match)

    def judged(credentials: Any) -> bool | None:
        if not isinstance(credentials, Mapping):
            return None
        return test(credentials)

    return Literal(kind, match, CALLER, Change.FIXED, judged)


def _check(kind: str, match: str) -> None:
    if not match:
        raise ValueError("nothing stands behind the colon")
    if match in TARGETS:
        if kind in ("role", "roles", "service_roles", *_BOOLEAN):
            raise ValueError(f"{shown(match)} cannot be compared here")
        if kind not in _OWN[match]:
            raise ValueError(
                f"`{kind}` never equals {match}: {_OWN[match][0]} does"
            )
        return
    if "%(" in match:
        raise ValueError(
            f"{shown(match)} is not known of a server: %(project_id)s and"
            " %(user_id)s are"
        )
    if "%" in match:
        raise ValueError(
            f"{shown(match)}: a condition on the caller knows no percent sign"
        )
    if "," in match:
        raise ValueError(
            f"a comma is not `any of` here: write `{kind}:a or {kind}:b`"
        )
    if '"' in match or "'" in match:
        raise ValueError(f"quotes do not help in {shown(match)}")
    # A role or a user may have such a name, and there is no other way to write
    # it: oslo.policy decodes nothing here.
    if match == "*" or (kind in _CLOSED and matches.sign(match)):
        raise ValueError(
            f"{shown(match)}: a value is compared as it is, without patterns"
            " and signs"
        )
    # Python's None is the text of a project that there is not.
    if (
        kind in _OWN["%(project_id)s"]
        and match != "None"
        and not (_PROJECT_ID.fullmatch(match))
    ):
        raise ValueError(
            f"{shown(match)} is no id of a project, perhaps a name"
        )
    if kind in _BOOLEAN and match not in ("True", "False"):
        raise ValueError(f"{shown(match)} is neither `True` nor `False`")
    if kind == "system_scope" and match != "all":
        raise ValueError(f"{shown(match)}: the only system scope is `all`")


def _against_target(kind: str, match: str) -> _Test | None:
    key = TARGETS.get(match)
    if key is None:
        return None

    def test(credentials: Mapping[str, Any]) -> bool | None:
        target = credentials.get("target")
        wanted = target.get(key) if isinstance(target, Mapping) else None
        if wanted is None:
            return None
        return str(credentials.get(kind)) == str(wanted)

    return test


def _against_text(kind: str, match: str) -> _Test:
    if kind == "role":
        lowered = match.lower()

        def has_role(credentials: Mapping[str, Any]) -> bool | None:
            roles = credentials.get("roles") or ()
            return lowered in [str(role).lower() for role in roles]

        return has_role

    def equal(credentials: Mapping[str, Any]) -> bool | None:
        found = credentials.get(kind)
        if isinstance(found, list | tuple | set | frozenset):
            return match in [str(item) for item in found]
        return kind in credentials and match == str(found)

    return equal
