# SPDX-License-Identifier: Apache-2.0
"""A test suite for the kinds of third parties.

A plugin's author subclasses ``KindContract`` in a test module::

    class TestMaintenance(KindContract):
        name = "acme.maintenance"
        kind = Maintenance
        good = ("true", "false")
        bad = ("perhaps",)
        values = (True, False)

and runs pytest (or calls ``violations`` anywhere else). Each method tests
one promise; where it is broken the message says which.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from state_policy.engine.facts import Age
from state_policy.engine.literal import Literal
from state_policy.rules.kinds import promises, registry
from state_policy.rules.kinds.base import Kind, Subject

_ODD: tuple[Any, ...] = (
    "",
    "\x00",
    -1,
    1.5,
    True,
    (),
    frozenset(),
    {},
    object(),
    Age(0),
)


class KindContract:
    """The promises of one kind; pytest collects subclasses named Test..."""

    #: The name of the entry point.
    name: ClassVar[str]
    #: The class.
    kind: ClassVar[type[Kind]]
    #: Matches that make sense, so many that they cover every form.
    good: ClassVar[Sequence[str]]
    #: Matches that do not.
    bad: ClassVar[Sequence[str]]
    #: Values the fact can have, so many that each outcome occurs.
    values: ClassVar[Sequence[Any]]

    def test_entry_point(self) -> None:
        """Exactly one installed entry point has the name, and is the kind."""
        points = importlib.metadata.entry_points(
            group=registry.GROUP, name=self.name
        )
        found = [point.load() for point in points]
        assert found == [self.kind], f"`{self.name}` is {found}"

    def test_name(self) -> None:
        """The name has a dot and takes nobody else's place."""
        reason = registry.reason_against(self.name, self.kind)
        assert not reason, f"`{self.name}` {reason}"

    def test_good_matches(self) -> None:
        """A match that makes sense compiles to a literal of this kind."""
        assert self.good, "name at least one match that makes sense"
        for match, literal in self._literals():
            reason = promises.of_literal(
                self.name, match, literal, registry.BUILTIN
            )
            assert not reason, f"`{match}`: {reason}"

    def test_fact(self) -> None:
        """The fact is the kind's own, or one that the driver reads."""
        for match, literal in self._literals():
            name = literal.fact.partition(":")[0]
            assert name in (self.name, *registry.BUILTIN), match
        reason = promises.of_class(self.kind, registry.BUILTIN)
        assert not reason, reason

    def test_bad_matches(self) -> None:
        """A match that makes no sense is a ValueError with one line."""
        for match in ("", *self.bad):
            try:
                self.kind(self.name, match)
            except ValueError as error:
                reason = str(error)
                assert reason and "\n" not in reason, match
                assert not reason.endswith("."), reason
            else:
                raise AssertionError(f"`{match}` is taken")

    def test_judges_any_value(self) -> None:
        """The test of a literal gives True, False or None, and nothing else.

        Not for any value either that the fact should never have.
        """
        for match, literal in self._literals():
            for value in (None, *_ODD, *self.values, *literal.samples):
                found = literal.test(value)
                assert found in (True, False, None), (match, value)
                assert isinstance(found, bool | None), (match, value)

    def test_samples(self) -> None:
        """The samples tell apart whatever the values do."""
        for match, literal in self._literals():
            outcomes = {literal.test(value) for value in self.values}
            tried = {literal.test(value) for value in literal.samples}
            assert outcomes - {None} <= tried, match
            assert len(set(literal.samples)) == len(literal.samples), match

    def test_ages(self) -> None:
        """Ages are Age, and once a lower bound decides, it decides so."""
        for match, literal in self._literals():
            if literal.ages:
                assert literal.numeric, match
            ages = [v for v in literal.samples if isinstance(v, Age)]
            assert bool(ages) == literal.ages, match
            for age in ages:
                bound = literal.test(Age(age.seconds, exact=False))
                later = literal.test(Age(age.seconds + 10**9))
                assert bound in (None, later), match

    def test_as_oslo_check(self) -> None:
        """oslo.policy's Enforcer gets True where the literal is True."""
        for match in self.good:
            check = self.kind(self.name, match)
            fact = check.literal.fact
            for value in self.values:
                wanted = check.literal.test(value) is True
                assert check({fact: value}, {}, None) is wanted, match
            assert check({}, {}, None) is False, match

    def test_read(self) -> None:
        """Where nothing is known, reading gives a value or LookupError."""
        subject = Subject("0", "0", {}, {})
        for _match, literal in self._literals():
            if literal.fact.partition(":")[0] != self.name:
                continue
            try:
                value = self.kind.read(literal.fact, subject)
            except LookupError:
                continue
            literal.test(value)

    def _literals(self) -> Iterator[tuple[str, Literal]]:
        for match in self.good:
            yield match, self.kind(self.name, match).literal


def violations(contract: type[KindContract]) -> list[str]:
    """Return the promises that a kind breaks, for use without pytest.

    :param contract: a subclass of ``KindContract``
    """
    found = []
    for name in sorted(n for n in dir(contract) if n.startswith("test_")):
        try:
            getattr(contract(), name)()
        except AssertionError as error:
            found.append(f"{name}: {error}")
        except (Exception, SystemExit) as error:  # noqa: BLE001 - any does
            found.append(f"{name}: {type(error).__name__}: {error}")
    return found
