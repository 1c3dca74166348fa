# SPDX-License-Identifier: Apache-2.0
"""Callers x servers x operations, with the filter and without it.

Each request goes to one Nova twice, once with the filter switched off by its
file. As soon as Nova's policy lets it pass it is broken off, so that servers
stay as they are. With rules that refuse nothing nothing may differ; with a
rule that refuses all, what Nova refuses by itself must come back byte for
byte, and what it would take is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from state_policy.drivers.nova import Driver
from state_policy.engine.operations import Operation
from tests.functional.nova_reading.test_answers import plain
from tests.functional.nova_reading.test_never_more import SwitchedTestCase
from tests.functional.nova_reading.test_rights import (
    AKIN,
    ALL,
    PEOPLE,
    _PassedError,
    rest_cells,
    told_more,
)

#: What came of a request: whether Nova took it, and the answer if not.
Outcome = tuple[bool, Any]

#: A caller, a kind of server, an operation.
Case = tuple[str, str, Operation]

#: Everybody who differs in rights.
CALLERS = tuple(name for name in PEOPLE if name not in AKIN)
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
        assert len(CALLERS) >= 10 and len(self.everything) == KINDS
        self.watch()
        self.reads = 0
        self.stub_out("state_policy.drivers.nova.Driver.read", self.reading())

    def reading(self) -> Any:
        """Return the driver's method that reads facts, counted."""
        read = Driver.read

        def counted(*args: Any) -> Any:
            self.reads += 1
            return read(*args)

        return counted

    def outcome(self, name: str, operation: Operation, server: str) -> Outcome:
        rest_cells()
        self.gate, self.passed, self.found = operation.gate, False, False
        try:
            answer = self.send(PEOPLE[name], operation, server)
        except _PassedError:
            return True, None
        finally:
            self.passed, self.gate = False, ""
        return answer.status < 300, answer

    def matrix(self, cases: Iterable[Case]) -> dict[bool, int]:
        """Compare; return how many Nova by itself took, and refused."""
        counts = {True: 0, False: 0}
        for name, kind, operation in cases:
            server = self.everything[kind]
            self.switch.touch()
            theirs = self.outcome(name, operation, server)
            self.switch.unlink()
            ours = self.outcome(name, operation, server)
            case = (name, kind, operation.name, theirs, ours)
            self.check(operation, theirs, ours, case)
            counts[theirs[0]] += 1
        print(f"compared {counts}, facts read {self.reads} times")
        return counts

    def check(
        self, operation: Operation, theirs: Outcome, ours: Outcome, case: Any
    ) -> None:
        """Look at one pair of outcomes."""
        raise NotImplementedError

    def equal(self, theirs: Outcome, ours: Outcome, case: Any) -> None:
        assert theirs[0] == ours[0], case
        if theirs[1] is not None or ours[1] is not None:
            assert plain(theirs[1]) == plain(ours[1]), (case, theirs[1].body)


class _Whole:
    """Each two of the three together, which is always run; and the whole."""

    def test_pairs(self) -> None:
        """Each caller with each operation and with each kind, and so on."""
        kinds = tuple(self.everything)
        counts = self.matrix(
            (name, kinds[(one + other) % KINDS], operation)
            for one, name in enumerate(CALLERS)
            for other, operation in enumerate(ALL)
        )
        assert sum(counts.values()) == len(CALLERS) * len(ALL)
        assert min(counts.values()) > 100

    @pytest.mark.stress
    def test_whole(self) -> None:
        counts = self.matrix(itertools.product(CALLERS, self.everything, ALL))
        assert sum(counts.values()) == len(CALLERS) * KINDS * len(ALL)
        assert min(counts.values()) > 500


class TestInert(_Whole, MatrixTestCase):
    """Rules that look at everything and refuse nothing."""

    RULES = INERT
    MORE: ClassVar[dict[str, Any]] = {"explain": False}
    taken = 0

    def check(
        self, operation: Operation, theirs: Outcome, ours: Outcome, case: Any
    ) -> None:
        self.equal(theirs, ours, case)
        self.taken += theirs[0]
        assert self.reads >= self.taken, case


class TestAllRefused(_Whole, MatrixTestCase):
    """Rules that refuse all that is not a read."""

    RULES = '"class:any": "!"\n'

    def check(
        self, operation: Operation, theirs: Outcome, ours: Outcome, case: Any
    ) -> None:
        if not theirs[0] or "read" in operation.classes:
            self.equal(theirs, ours, case)
            return
        passed, answer = ours
        if told_more(case[0], case[1], operation):
            assert ours == theirs == (True, None), case
            return
        assert not passed and answer.status == 403, case
        assert answer.json.keys() == {"forbidden"}, case
        for secret in (b"active", b"error", b"fake", b"'compute'"):
            assert secret not in answer.body, case
