# SPDX-License-Identifier: Apache-2.0
"""From a condition's text to its literal, each text once."""

from __future__ import annotations

from collections.abc import Mapping

from state_policy.engine.literal import Literal
from state_policy.rules.faults import nearest, shown
from state_policy.rules.kinds import BUILTIN, Kind, promises
from state_policy.rules.kinds.caller import KINDS as CALLER_KINDS
from state_policy.rules.kinds.caller import compile_caller
from state_policy.rules.kinds.registry import RULE


class Judging:
    """Knows every kind; says what a condition is, or why it is none."""

    def __init__(self, kinds: Mapping[str, type[Kind]] | None) -> None:
        """Take the kinds by name; None where they could not be had.

        Then a condition of any kind but the caller's is taken for good.
        """
        self._kinds = kinds
        self._known: dict[tuple[str, str], Literal] = {}

    def __call__(self, kind: str, match: str) -> None:
        """Judge a condition.

        :raises ValueError: with the reason
        """
        if kind == RULE:
            if not match:
                raise ValueError("nothing stands behind the colon")
        elif self._kinds is not None or kind in CALLER_KINDS:
            self.literal(kind, match)

    def literal(self, kind: str, match: str) -> Literal:
        """Return a condition compiled.

        :raises ValueError: with the reason
        """
        key = (kind, match)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compile(kind, match)
        return found

    def _compile(self, kind: str, match: str) -> Literal:
        if kind in CALLER_KINDS:
            return compile_caller(kind, match)
        cls = (self._kinds or {}).get(kind)
        if cls is None:
            raise ValueError(self._unknown(kind))
        try:
            literal = cls(kind, match).literal
            reason = promises.of_literal(kind, match, literal, BUILTIN)
        except ValueError:
            raise
        except (Exception, SystemExit) as error:
            # A plugin may raise anything.
            raise ValueError(
                f"the kind failed: {type(error).__name__}: {error}"
            ) from error
        if reason:
            raise ValueError(f"the kind breaks its contract: {reason}")
        return literal

    def _unknown(self, kind: str) -> str:
        if kind in ("http", "https"):
            return "asking another service is not supported"
        known = [*(self._kinds or {}), RULE, *CALLER_KINDS]
        same = [name for name in known if name.endswith(f".{kind}")]
        hint = f" (did you mean `{same[0]}`?)" if same else ""
        return f"unknown kind {shown(kind)}{hint or nearest(kind, known)}"
