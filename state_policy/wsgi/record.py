# SPDX-License-Identifier: Apache-2.0
"""What the filter writes down: a line per decision, faults, counters.

Nothing here raises: what was decided and done stands, whether or not it could
be written down. No body, no header and no token of a request comes near it.
"""

from __future__ import annotations

import json
import logging
import threading
import traceback
from collections import Counter
from collections.abc import Mapping
from typing import Any

from state_policy.engine.decision import Decision
from state_policy.engine.facts import CALLER, Age, Part
from state_policy.engine.ports.reading import Caller

#: One JSON object a line; see the documentation of answers.
DECISIONS = logging.getLogger("state_policy.decisions")
LOG = logging.getLogger("state_policy.filter")

#: So many different names of unknown actions are logged: whoever sends
#: requests chooses them.
_NAMES = 50
_NAME_LENGTH = 64


class Counters:
    """Counts by name; safe between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, name: str) -> int:
        """Count one more and return how many there are now."""
        with self._lock:
            self._counts[name] += 1
            return self._counts[name]

    def read(self) -> Mapping[str, int]:
        """Return all counts."""
        with self._lock:
            return dict(self._counts)


class Recorder:
    """Writes decisions, faults and oddities to the log, and counts them."""

    def __init__(self, mode: str, counters: Counters | None = None) -> None:
        self._mode = mode
        self.counters = counters or Counters()
        self._lock = threading.Lock()
        self._seen: set[str] = set()

    def decision(
        self,
        decision: Decision,
        caller: Caller,
        server_id: str,
        *,
        note: str | None = None,
        shadow: Decision | None = None,
    ) -> None:
        """Write a decision down.

        :param note: what became of it, where that is not the verdict
        :param shadow: what the shadow rules would have decided instead
        """
        self.counters.add(f"decision.{decision.verdict}")
        try:
            line = describe(decision, caller, server_id)
            line["mode"] = self._mode
            if note is not None:
                line["note"] = note
            if shadow is not None:
                line["shadow"] = _outcome(shadow)
            DECISIONS.info("%s", json.dumps(line, sort_keys=True))
        except Exception as error:  # noqa: BLE001
            self.fault(error)

    def unknown_action(self, name: str) -> None:
        """Count an action that is none of ours; log each name once."""
        self.counters.add("unknown_action")
        shown = name[:_NAME_LENGTH]
        with self._lock:
            if shown in self._seen or len(self._seen) >= _NAMES:
                return
            self._seen.add(shown)
        LOG.warning("an action that no rule covers was asked for: %r", shown)

    def unreadable(self, reason: str) -> None:
        """Count a body that could not be read; log the first."""
        if self.counters.add("unreadable_body") == 1:
            LOG.warning(
                "the body of an action went on to Nova undecided: %s", reason
            )

    def nobody(self) -> None:
        """Count a request on a server whose sender is not known; log one."""
        if self.counters.add("nobody") == 1:
            LOG.warning(
                "a request on a server went on undecided: who sent it is not "
                "known. Does the filter stand behind what finds that out?"
            )

    def fault(self, error: BaseException) -> None:
        """Log a failure of ours, without the values that made it."""
        self.counters.add("fault")
        frames = traceback.extract_tb(error.__traceback__)
        place = " < ".join(
            f"{frame.filename}:{frame.lineno}" for frame in frames[::-1]
        )
        try:
            # oslo.log adds the text of the exception that is being handled,
            # unless it is a plain one of these.
            raise ValueError
        except ValueError:
            LOG.error(
                "the filter failed on a request: %s at %s",
                type(error).__name__,
                place,
            )


def describe(
    decision: Decision, caller: Caller, server_id: str
) -> dict[str, Any]:
    """Return a decision as the log has it."""
    credentials = caller.credentials
    return {
        "decision": decision.id,
        "revision": decision.revision,
        "operation": decision.operation,
        "server": server_id,
        **_outcome(decision),
        "facts": {
            key: plain(value)
            for key, value in decision.facts.items()
            if key != CALLER
        },
        "user": credentials.get("user_id"),
        "project": credentials.get("project_id"),
        "roles": list(credentials.get("roles") or ()),
        "request": caller.request_id,
    }


def _outcome(decision: Decision) -> dict[str, Any]:
    return {
        "verdict": str(decision.verdict),
        "code": decision.code,
        "retry_after": decision.retry_after,
        "undecided": decision.undecided,
        "rule": decision.rule,
        "rules": list(decision.rules),
    }


def plain(value: Any) -> Any:
    """Return a fact's value as JSON has it."""
    if isinstance(value, Age):
        return {"seconds": round(value.seconds), "exact": value.exact}
    if isinstance(value, Part):
        return {
            "has": sorted(value.has),
            "lacks": sorted(value.lacks),
            "others": value.others,
        }
    if isinstance(value, set | frozenset | tuple | list):
        return sorted(str(item) for item in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
