# SPDX-License-Identifier: Apache-2.0
"""Facts that kinds of third parties read themselves."""

import logging

from state_policy.engine.literal import Change
from state_policy.engine.ports.reading import Caller, Location
from state_policy.rules.kinds.names import Flag
from state_policy.rules.reading import KindReader

CALLER = Caller({"project_id": "p1"})
LOCATION = Location("s1", "p1")


class Night(Flag):
    """True on one host."""

    change = Change.PASSING
    wants = frozenset({"server.host"})

    @classmethod
    def read(cls, key, subject):
        assert (subject.server_id, subject.project_id) == ("s1", "p1")
        assert subject.credentials == {"project_id": "p1"}
        return subject.facts["server.host"] == "dark"


class Failing(Flag):
    """Cannot read."""

    change = Change.PASSING

    @classmethod
    def read(cls, key, subject):
        raise OSError("no answer")


class Driver:
    """Knows one host; notes what it was asked."""

    def __init__(self, **facts):
        self.asked = []
        self.facts = {f"server.{key}": value for key, value in facts.items()}

    def read(self, caller, location, keys):
        self.asked.append(set(keys))
        return {k: v for k, v in self.facts.items() if k in keys}


KINDS = {"acme.night": Night, "acme.failing": Failing}


def read(driver, *keys):
    return KindReader(driver, KINDS).read(CALLER, LOCATION, frozenset(keys))


def test_without_them_the_driver_is_asked_as_before():
    driver = Driver(locked=True)
    assert read(driver, "server.locked") == {"server.locked": True}
    assert driver.asked == [{"server.locked"}]


def test_a_kind_reads_with_the_facts_it_wants():
    driver = Driver(host="dark", locked=True)
    assert read(driver, "acme.night", "server.locked") == {
        "acme.night": True,
        "server.locked": True,
    }
    assert driver.asked == [{"server.host", "server.locked"}]


def test_a_wanted_fact_that_a_rule_names_too_is_kept():
    assert read(Driver(host="a"), "acme.night", "server.host") == {
        "acme.night": False,
        "server.host": "a",
    }


def test_what_cannot_be_read_is_left_out(caplog):
    with caplog.at_level(logging.ERROR):
        assert read(Driver(), "acme.failing") == {}
        # A KeyError is a LookupError: the host is not known.
        assert read(Driver(), "acme.night") == {}
    assert len(caplog.records) == 1
    assert "acme.failing" in caplog.text
