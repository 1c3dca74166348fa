# SPDX-License-Identifier: Apache-2.0
"""Callers x servers x operations, with the filter and without it.

Each request goes to one Nova twice, once with the filter switched off by its
file. As soon as Nova's policy lets it pass it is broken off, so that servers
stay as they are. With rules that refuse nothing nothing may differ; with a
rule that refuses all, what Nova refuses by itself must come back byte for
byte, and what it would take is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from state_policy.engine.operations import Operation
from tests.functional.nova_reading.test_answers import plain
from tests.functional.nova_reading.test_never_more import SwitchedTestCase
from tests.functional.nova_reading.test_rights import (
    AKIN,
    ALL,
    PEOPLE,
    _PassedError,
    told_more,
)

#: What came of a request: whether Nova took it, and the answer if not.
Outcome = tuple[bool, Any]

#: Everybody who differs in rights.
CALLERS = tuple(name for name in PEOPLE if name not in AKIN)
FEW = ("owner", "reader", "foreigner", "admin")
KINDS = 7

#: Reads facts for every operation, and never refuses.
INERT = """
"class:any": "server.vm_state:active or not server.vm_state:active"
"class:read": "rule:class:any"
"""


class MatrixTestCase(SwitchedTestCase):
    """Compares what comes of requests."""

    MORE: ClassVar[dict[str, Any]] = {}

    def _set_options(self) -> None:
        super()._set_options()
        if self.MORE:
            self.flags(group="state_policy", **self.MORE)

    def setUp(self) -> None:
        super().setUp()
        self.switch.touch()
        self.everything = self.servers()
        self.watch()

    def breaks_off(self, operation: Operation) -> bool:
        """Return whether a request by the filter is broken off, too.

        The filter asks the same policy itself, before Nova does.
        """
        return True

    def outcome(
        self,
        name: str,
        operation: Operation,
        server: str,
        broken_off: bool = True,
    ) -> Outcome:
        gate = operation.gate if broken_off else ""
        self.gate, self.passed, self.found = gate, False, False
        try:
            answer = self.send(PEOPLE[name], operation, server)
        except _PassedError:
            return True, None
        finally:
            self.passed, self.gate = False, ""
        return answer.status < 300, answer

    def matrix(
        self, callers: Iterable[str], kinds: Iterable[str] | None = None
    ) -> dict[bool, int]:
        """Compare; return how many Nova took, and refused."""
        counts = {True: 0, False: 0}
        for kind in kinds or self.everything:
            for name in callers:
                for operation in ALL:
                    try:
                        took = self.compare_one(name, kind, operation)
                    except AssertionError:
                        # A compute service that reads the row just now makes
                        # a request seem to have come further than it did.
                        took = self.compare_one(name, kind, operation)
                    counts[took] += 1
        print(f"compared {counts}")
        return counts

    def compare_one(self, name: str, kind: str, operation: Operation) -> bool:
        """Send one request twice; return whether Nova by itself took it."""
        server = self.everything[kind]
        self.switch.touch()
        theirs = self.outcome(name, operation, server)
        self.switch.unlink()
        ours = self.outcome(
            name, operation, server, self.breaks_off(operation)
        )
        case = (name, kind, operation.name, theirs, ours)
        self.check(operation, theirs, ours, case)
        return theirs[0]

    def check(
        self, operation: Operation, theirs: Outcome, ours: Outcome, case: Any
    ) -> None:
        """Look at one pair of outcomes."""
        raise NotImplementedError

    def equal(self, theirs: Outcome, ours: Outcome, case: Any) -> None:
        assert theirs[0] == ours[0], case
        if theirs[1] is not None or ours[1] is not None:
            assert plain(theirs[1]) == plain(ours[1]), case


class _Whole:
    """The part that is always run, and the whole."""

    def test_some(self) -> None:
        counts = self.matrix(FEW, ("active",))
        assert sum(counts.values()) == len(FEW) * len(ALL)
        assert min(counts.values()) > 100

    @pytest.mark.stress
    def test_whole(self) -> None:
        assert len(CALLERS) >= 10 and len(self.everything) == KINDS
        counts = self.matrix(CALLERS)
        assert sum(counts.values()) == len(CALLERS) * KINDS * len(ALL)
        assert min(counts.values()) > 500


class TestInert(_Whole, MatrixTestCase):
    """Rules that look at everything and refuse nothing."""

    RULES = INERT
    MORE: ClassVar[dict[str, Any]] = {"explain": False}

    def check(
        self, operation: Operation, theirs: Outcome, ours: Outcome, case: Any
    ) -> None:
        self.equal(theirs, ours, case)


class TestAllRefused(_Whole, MatrixTestCase):
    """Rules that refuse all that is not a read."""

    RULES = '"class:any": "!"\n'

    def breaks_off(self, operation: Operation) -> bool:
        # The others must not come so far.
        return "read" in operation.classes

    def check(
        self, operation: Operation, theirs: Outcome, ours: Outcome, case: Any
    ) -> None:
        if not theirs[0] or "read" in operation.classes:
            self.equal(theirs, ours, case)
            return
        passed, answer = ours
        if told_more(case[0], case[1], operation):
            # Nova's own answer to strangers, with nothing of ours.
            assert b"state_policy" not in answer.body, case
            return
        assert not passed and answer.status == 403, case
        assert answer.json.keys() == {"forbidden"}, case
        for secret in (b"active", b"error", b"fake", b"'compute'"):
            assert secret not in answer.body, case
