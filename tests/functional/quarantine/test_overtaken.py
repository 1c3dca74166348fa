# SPDX-License-Identifier: Apache-2.0
"""Two that go on with one server: who comes late changes nothing.

A sweep that purges or settles beside an operator who releases, two that end
the same release, and steps that a request left running behind it.
"""

from __future__ import annotations

import copy
import datetime
import threading
from typing import Any
from unittest import mock

import sqlalchemy as sa
from nova import objects
from nova.conductor.tasks import cross_cell_migrate
from nova.db.main import models
from oslo_utils import timeutils

from state_policy.drivers.nova.moving import budget, rows
from state_policy.engine.ports.moving import OvertakenError, Server
from state_policy.quarantine import operator, purge, release
from state_policy.quarantine.record import Kind, Record, dump, of
from state_policy.quarantine.sweep import Sweep
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.steps import DeathError, StepCase
from tests.functional.quarantine.support import OWNER
from tests.functional.quarantine.test_ports import PortCase

MOVED = [Kind.CONCEAL, Kind.SETTLE]


class TestOvertaken(StepCase):
    """Each act meets another, as Nova counts by placement."""

    HOSTS = (("compute1", "cell1"), ("compute2", "cell1"))  # one gets full

    def setUp(self) -> None:
        """Have Nova count what it has not been asked to delete."""
        super().setUp()
        self.flags(count_usage_from_placement=True, group="quota")

    def seen(self, server: str) -> tuple[Server, Record]:
        """Return a server as it is now."""
        found = self.mover.look(server)
        assert found is not None
        record = of(found)
        assert record is not None
        return found, record

    def release(self, server: str) -> None:
        """Give it back, as an operator does."""
        operator.release_one(self.mover, self.policy, server)

    def counted(self) -> list[int]:
        """Return how many servers the owner is counted, and the keeper."""
        return [
            self.used(who)["instances"] for who in (base.OWNER, base.INSPECTOR)
        ]

    def test_each(self) -> None:
        """On one Nova: each part has servers of its own."""
        for part in (
            self.purge_beside_a_release,
            self.purge_in_a_release,
            self.settle_beside_a_release,
            self.delete_in_a_release,
            self.concealed_again_in_a_release,
            self.late_to_a_release,
            self.clocks_that_differ,
            self.told_before_the_last_step,
            self.records_that_were_written_backwards,
        ):
            with self.subTest(part.__name__):
                part()

    def purge_beside_a_release(self) -> None:
        """What is released is not deleted."""
        for step in ("write_record", "delete"):
            server = self.settled()
            seen, record = self.seen(server)
            self.before(step, lambda one=server: self.release(one))
            self.assertRaises(
                OvertakenError, purge.purge, self.mover, seen, record
            )
            self.assert_owners(server)
            attempts = self.kinds(server).count(Kind.PURGE)
            self.assertEqual(int(step == "delete"), attempts)
            self.assertEqual([], self.swept())
            self.assert_owners(server)

    def purge_in_a_release(self) -> None:
        """The sweep was past its look when the release was written down."""
        server = self.settled()
        seen, record = self.seen(server)
        self.before(
            "charge",
            lambda: self.assertRaises(
                OvertakenError, purge.purge, self.mover, seen, record
            ),
        )
        self.release(server)
        self.assert_owners(server)
        self.assertEqual([*MOVED, Kind.RELEASE], self.kinds(server))

    def settle_beside_a_release(self) -> None:
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        self.before("settle_row", lambda: self.release(server))
        self.assertEqual([], self.swept())
        self.assert_owners(server)
        # before its last step, the row is as the sweep has seen it
        self.assertEqual(204, self.delete(server).status)
        seen, record = self.seen(server)
        settle = Sweep(self.mover, self.policy)._settle
        self.before(
            "return_row",
            lambda: self.assertRaises(OvertakenError, settle, seen, record),
        )
        self.release(server)
        self.assert_owners(server)

    def delete_in_a_release(self) -> None:
        """What goes on going is not counted as its owner's."""
        for step in ("charge", "return_row"):
            others = self.counted()
            server = self.settled()
            hold = self.hold("destroy")

            def act(server: str = server, hold: Any = hold) -> None:
                answer = self.delete(server, who=base.OPERATOR)
                self.assertEqual(204, answer.status)
                hold.wait_reached()

            self.before(step, act)
            self.release(server)
            self.assertEqual(OWNER.project_id, self.mapped(server))
            self.assertEqual(others, self.counted(), step)
            hold.release()
            self.assert_gone(server)

    def concealed_again_in_a_release(self) -> None:
        """Another one ended it, and the owner sent his next DELETE."""
        for step in ("give", "return_row"):
            server = self.settled()
            seen, record = self.begin_release(server)

            def act(server: str = server) -> None:
                self.release(server)
                self.assertEqual(204, self.delete(server).status)

            self.before(step, act)
            self.assertRaises(
                OvertakenError, release.release, self.mover, seen, record
            )
            self.assert_concealed(server)
            self.assertEqual(["settle"], self.swept(), step)
            self.assert_settled(server)

    def late_to_a_release(self) -> None:
        """Its owner has locked the server since."""
        server = self.settled()
        seen, record = self.begin_release(server)

        def act() -> None:
            self.release(server)
            path = f"/servers/{server}/action"
            answer = self.ask("POST", path, {"lock": None}, who=base.OWNER)
            self.assertEqual(202, answer.status)

        self.before("return_row", act)
        release.release(self.mover, seen, record)
        self.assertEqual("owner", surgery.row(server)["locked_by"])
        self.assert_owners(server)

    def clocks_that_differ(self) -> None:
        """What was done last counts, whatever a host takes for the time."""
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        with self.clock_ahead():
            self.assertEqual(["settle"], self.swept())
        self.release(server)
        self.assert_owners(server)
        with self.clock_ahead():
            self.assertEqual(204, self.delete(server).status)
            self.release(server)
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)

    def clock_ahead(self) -> Any:
        """Have the clock of whoever writes records be two seconds ahead."""
        ahead = timeutils.utcnow() + datetime.timedelta(seconds=2)
        return mock.patch.object(
            rows, "timeutils", mock.Mock(utcnow=lambda: ahead)
        )

    def begin_release(self, server: str) -> tuple[Server, Record]:
        """Write a release down, and no more; return what is seen then."""
        seen, record = self.seen(server)
        text = dump(record.next(Kind.RELEASE, self.mover.now()))
        self.mover.write_record(server, OWNER, text, seen.record)
        return self.seen(server)

    def told_before_the_last_step(self) -> None:
        """Whoever dies there has told it; the sweep tells it again."""
        told: list[str] = []
        self.mover.notify = lambda event, payload: told.append(event)
        self.addCleanup(delattr, self.mover, "notify")
        server = self.settled()
        mend = self.die_at("return_row")
        self.assertRaises(DeathError, self.release, server)
        mend()
        self.assertEqual(["release"], self.swept())
        self.assertEqual(
            ["settle", "release", "release"],
            [event.rpartition(".")[2] for event in told],
        )

    def records_that_were_written_backwards(self) -> None:
        """As a move to another cell writes them (Nova, cross-cell resize)."""
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        surgery.make_older(server, seconds=10)
        self.assertEqual(["settle"], self.swept())
        surgery.make_older(server, seconds=10)
        self.release(server)
        self._write_anew(server)
        kinds = [*MOVED, Kind.RELEASE]
        self.assertEqual(kinds[::-1], self.kinds(server))
        _, record = self.seen(server)
        self.assertIs(Kind.RELEASE, record.kind)
        self.assertEqual(dump(record), self.mover.newest_record(server))

    def _write_anew(self, server: str) -> None:
        clone = cross_cell_migrate.clone_creatable_object
        with surgery.cell_of(server) as cell:
            actions = objects.InstanceActionList.get_by_instance_uuid(
                cell, server
            )
            events = {
                action.id: objects.InstanceActionEventList.get_by_action(
                    cell, action.id
                )
                for action in actions
            }
            for model, column in (
                (models.InstanceActionEvent, "action_id"),
                (models.InstanceAction, "id"),
            ):
                table = model.__table__
                surgery.execute(
                    server,
                    sa.delete(table).where(table.c[column].in_(events)),
                )
            for action in actions:
                clone(cell, action).create()
                for event in events[action.id]:
                    clone(cell, event).create(server, action.request_id)


class TestBehind(PortCase):
    """What a request left running goes on when its server was released."""

    POLICY = {"request_budget": 0.5}

    def test_neutron_hangs(self) -> None:
        second = self.neutron.port_2["id"]
        self.neutron._ports[second] = copy.deepcopy(self.neutron.port_2)
        server = self.boot(networks=[{"port": self.owned}, {"port": second}])
        going_on, ended = threading.Event(), threading.Event()
        self.addCleanup(going_on.set)
        update = type(self.neutron).update_port
        work = budget.Budget._work

        def hang(*args: Any, **kwargs: Any) -> Any:
            going_on.wait(60)
            return update(*args, **kwargs)

        def watched(*args: Any) -> None:
            work(*args)
            ended.set()

        self.stub_out(
            "nova.tests.fixtures.neutron.NeutronFixture.update_port", hang
        )
        self.stub_out(
            "state_policy.drivers.nova.moving.budget.Budget._work", watched
        )
        self.assertEqual(204, self.delete(server).status)
        operator.release_one(self.mover, self.policy, server)
        self.assertFalse(ended.is_set())
        going_on.set()
        self.assertTrue(ended.wait(60))
        self.assert_owners(server)
        # only what was on its way when the server was released
        taken, left = sorted((self.owned, second))
        self.assert_free(taken)
        self.assertEqual(server, self.port(left)["device_id"])
