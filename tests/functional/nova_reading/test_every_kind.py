# SPDX-License-Identifier: Apache-2.0
"""Every kind, as rules write it, on real servers in every place there is.

A kind that is not in the table fails the test, and so does a place in which
its condition is anything but true.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from oslo_db import exception as db_exception

from state_policy import rules
from state_policy.engine.facts import Facts
from state_policy.engine.ruleset import Rule
from state_policy.rules.kinds import BUILTIN
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.nova_reading import test_facts
from tests.functional.nova_reading.reading import ReadingTestCase, caller_of

PLACES = ("a plain server", "one that has all", "in cell0", "a build request")

#: What is true of each kind, by place; ``none``: there is no value.
TRUE = """
server.vm_state         | active      | active         | error   | building
server.task_state       | none        | deleting       | none    | scheduling
server.power_state      | running     | shutdown       | pending | pending
server.state_age        | <1h         | >=90m          | <1h     | <1h
server.age              | <1h         | >=90m          | <1h     | <1h
server.running          | none        | delete         | none    | none
server.running_age      | none        | >=90m          | none    | none
server.attempts         | <1          | >=1            | <1      | <1
server.launched         | true        | true           | false   | false
server.disable_terminate| false       | true           | false   | false
server.locked           | false       | true           | false   | false
server.host_up          | true        | true           | none    | none
server.cell_up          | true        | true           | true    | true
server.migration        | none        | live-migration | none    | none
server.hypervisor       | fake        | fake           | none    | none
server.host             | compute     | compute        | none    | none
server.az               | nova        | nova           | none    | nova
server.aggregate        | racks       | racks          | none    | none
server.flavor           | m1.tiny     | m1.tiny        | m1.tiny | m1.tiny
server.image            | IMAGE       | IMAGE          | IMAGE   | IMAGE
server.volumes          | none        | any            | none    | none
server.volume_backed    | false       | true           | false   | false
server.metadata         | none        | tier=gold      | none    | tier=gold
server.tag              | none        | blue           | none    | none
project.deletes:10m     | :>=1        | :>=1           | :>=1    | :>=1
cloud.stuck             | <1          | <2             | <2      | <2
"""

NO_IMAGE = "00000000-0000-4000-8000-000000000000"

#: The sweep alone gives these to rules (test_rules_of_the_sweep).
OF_THE_SWEEP = {"quarantine.age", "quarantine.completed"}


def table() -> dict[str, dict[str, str]]:
    """Return what is true of each kind, by place."""
    lines = [line.split("|") for line in TRUE.strip().splitlines()]
    return {
        name.strip(): dict(
            zip(PLACES, (cell.strip() for cell in cells), strict=True)
        )
        for name, *cells in lines
    }


def kind_of(name: str) -> str:
    return name.partition(":")[0]


@pytest.mark.parametrize("kind", BUILTIN)
def test_every_kind_is_in_the_table(kind: str) -> None:
    assert kind in OF_THE_SWEEP | {kind_of(name) for name in table()}


def text_of(kind: str, match: str) -> str:
    """Return a condition as a rule has it."""
    return f"{kind}{'' if match.startswith(':') else ':'}{match}"


class TestEveryKind(ReadingTestCase):
    """One Nova for all."""

    def rule(self, text: str) -> Rule:
        """Return what a file makes of a condition."""
        file = self.directory / "kinds.yaml"
        file.write_text(f'"server:stop": "{text}"\n')
        return rules.load([file]).operations["stop"].may

    def value(self, rule: Rule, server: str) -> bool | None:
        """Return what a condition is on a server, read as in a request."""
        facts: Facts = self.driver.read(
            caller_of(base.OWNER), self.locate(server), rule.needs
        )
        return rule.test(facts)

    def servers(self) -> dict[str, str]:
        """Return a server in each place; one has a value of everything."""
        gone = self.boot()
        self.delete(gone)
        self.wait_for(lambda: surgery.row(gone)["deleted"], "deleted")
        made = self.operator.post_aggregate({"aggregate": {"name": "racks"}})
        self.operator.add_host_to_aggregate(made["id"], "compute")
        found = {"a plain server": self.boot()}
        found["one that has all"] = self.laden()
        self.force_down()
        found["in cell0"] = self.boot(expected="ERROR")
        self.force_down(down=False)
        self.stub_out(
            "nova.conductor.api.ComputeTaskAPI.schedule_and_build_instances",
            lambda *_, **__: None,
        )
        body = self._build_server(networks="none", az="nova")
        body["metadata"] = {"tier": "gold"}
        request = self.owner.post_server({"server": body})
        return {**found, "a build request": request["id"]}

    def laden(self) -> str:
        """Return a server of which every kind has a value."""
        give = test_facts.TestInACell
        server = self.boot()
        path = f"/servers/{server}"
        self.ask("POST", f"{path}/metadata", {"metadata": {"tier": "gold"}})
        self.ask("PUT", f"{path}/tags/blue")
        hold = self.hold("destroy")
        self.delete(server)
        hold.wait_reached()
        reset = {"os-resetState": {"state": "active"}}
        self.act(server, reset, who=base.OPERATOR)
        give.give_volume(self, server, boot_index=0)
        give.give_migration(self, server, "live-migration", "running")
        surgery.make_older(server, minutes=100)
        surgery.set_row(
            server,
            task_state="deleting",
            locked=True,
            locked_by="owner",
            disable_terminate=True,
            power_state=4,
        )
        return server

    def test_every_place(self) -> None:
        servers = self.servers()
        image = surgery.row(servers["a plain server"])["image_ref"]
        wrong = []
        for (kind, by_place), place in itertools.product(
            table().items(), PLACES
        ):
            match = by_place[place].replace("IMAGE", image)
            rule = self.rule(text_of(kind, match))
            if self.value(rule, servers[place]) is not True:
                shown = self.read(servers[place], *rule.needs)
                wrong.append((kind, place, match, shown))
                continue
            # Not read is neither yes nor no.
            assert rule.test({}) is None, kind
            opposite = self.rule(f"not {text_of(kind, match)}")
            assert self.value(opposite, servers[place]) is False, kind
        assert not wrong, wrong
        self.nothing_read(servers["a plain server"])

    def nothing_read(self, server: str) -> None:
        """A cell that refuses: one kind is known of its servers."""

        def refuse(*_: Any) -> None:
            raise db_exception.DBConnectionError()

        self.stub_out("state_policy.drivers.nova.server.load", refuse)
        seen = 0
        for kind, by_place in table().items():
            if not kind.startswith("server."):
                continue
            match = by_place["a plain server"].replace("IMAGE", NO_IMAGE)
            expected = False if kind == "server.cell_up" else None
            rule = self.rule(text_of(kind, match))
            assert self.value(rule, server) is expected, kind
            seen += 1
        assert seen > 20
