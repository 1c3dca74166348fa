# SPDX-License-Identifier: Apache-2.0
"""What a sweep ends: early deletes, half-done moves, what was stranded."""

from __future__ import annotations

from dataclasses import replace

from nova import context, objects

from state_policy.quarantine import operator, record, release
from state_policy.quarantine.record import Kind
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, OWNER, RequestCase


class TestEarlyDelete(RequestCase):
    """A DELETE that came before its rule was true is picked up later."""

    RULES = (
        '"server:delete:quarantine": "server.task_state:deleting and '
        'server.state_age:>=5m"\n'
    )

    def test_reasked(self) -> None:
        server, hold = self.boot_held()
        self.assertEqual(204, self.delete(server).status)
        self.wait_task(server, "deleting")
        surgery.make_older(server, minutes=1)
        self.assertEqual([], self.swept())
        self.assertEqual([server], self.listed())
        surgery.make_older(server, minutes=10)
        # a lock that came since is respected, and forgotten with its end
        self.assertEqual(202, self.act(server, "lock").status)
        self.assertEqual([], self.swept())
        self.assertEqual(202, self.act(server, "unlock").status)
        self._announces(server, "conceal", "its delete has not ended")
        self.assertEqual(["conceal"], self.swept())
        self.assert_concealed(server)
        (found,) = self.records(server)
        self.assertIsNone(found.requested_by)
        asked = [
            action["request_id"]
            for action in surgery.actions(server)
            if action["action"] == "delete"
        ]
        self.assertEqual(asked, [found.request_id])
        # who releases it while the delete is stuck is not contradicted
        operator.release_one(self.mover, self.policy, server)
        self._announces(
            server,
            "leave",
            "its delete has not ended, but it was released since",
        )
        self.assertEqual([], self.swept())
        self.assert_owners(server)
        # but its owner is heard who deletes it once more
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        hold.release()
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.assertIn("give back", self.swept())
        self.wait_for(lambda: not self.guests(), "no guest")
        self.assertIsNone(self.charged(server))

    def _announces(self, server: str, step: str, why: str) -> None:
        """A sweep that does not act says this, and does nothing."""
        for how in ({"dry_run": True}, {"enforced": False}):
            (done,) = self.sweep(**how).done
            self.assertEqual(
                (server, step, why, False),
                (done.server_id, done.step, done.why, done.acted),
            )
        self.assertEqual([server], self.listed())

    def test_not_for_others_deletes(self) -> None:
        """An administrator's delete is not asked again as the owner's."""
        server = self.boot()
        hold = self.hold("destroy")
        answer = self.delete(server, who=base.OPERATOR)
        self.assertEqual(204, answer.status)
        hold.wait_reached()
        surgery.make_older(server, minutes=10)
        self.assertEqual([], self.swept())
        self.assertFalse(surgery.row(server)["hidden"])
        # nor is the owner's, after which an administrator has reset it
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        self.wait_task(server, "deleting")
        surgery.make_older(server, minutes=10)
        body = {"os-resetState": {"state": "active"}}
        self.assertEqual(202, self.act(server, body, who=base.OPERATOR).status)
        answer = self.delete(server, who=base.OPERATOR)
        self.assertEqual(204, answer.status)
        self.wait_task(server, "deleting")
        surgery.make_older(server, minutes=10)
        self.assertEqual([], self.swept())
        self.assertFalse(surgery.row(server)["hidden"])


class TestHalfDone(RequestCase):
    """A process dies between two steps; the next sweep goes on."""

    def test_release(self) -> None:
        """A half-done release is not taken for a half-done conceal."""
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        for step in ("charge", "give", "return_row"):
            seen = self.mover.look(server)
            found = record.of(seen)
            original = getattr(self.mover, step)
            setattr(self.mover, step, _die)
            self.assertRaises(
                _DeathError, release.release, self.mover, seen, found
            )
            setattr(self.mover, step, original)
            self.assertEqual(["release"], self.swept(), step)
            self.assert_owners(server)
            self.assertEqual([], self.swept())
            self.assertEqual(204, self.delete(server).status)
            self.assertEqual(["settle"], self.swept())
        kinds = [r.kind for r in self.records(server)]
        self.assertEqual(
            3 * [Kind.CONCEAL, Kind.SETTLE, Kind.RELEASE],
            kinds[:9],
        )

    def test_conceal(self) -> None:
        """Every step after the row may be the one that is not reached."""
        server = self.boot()
        mover_class = type(self.mover)
        for step in ("give", "within", "release_ports", "charge"):
            original = getattr(mover_class, step)
            self.stub_out(
                "state_policy.drivers.nova.moving.Mover." + step, _die
            )
            try:
                status = self.delete(server).status
            finally:
                self.stub_out(
                    "state_policy.drivers.nova.moving.Mover." + step,
                    original,
                )
            self.assertEqual(204, status, step)
            self.assertTrue(surgery.row(server)["hidden"])
            self.assertNotIn(server, self.listed())
            self.swept()
            self.assert_settled(server)
            self.assertEqual([], self.swept(), step)
            operator.release_one(self.mover, self.policy, server)
            self.assert_owners(server)

    def test_nothing_done(self) -> None:
        """A failure before the row changes nothing: Nova's own delete."""
        server = self.boot()
        self.stub_out(
            "state_policy.drivers.nova.moving.Mover.conceal_row", _die
        )
        self.assertEqual(204, self.delete(server).status)
        self._wait_until_deleted({"id": server})
        self.assertEqual([], self.records(server))


class TestStranded(RequestCase):
    """What is settled by its deadline may be stranded; purge ends it."""

    POLICY = {"deadline": 1}

    def test_purge_climbs(self) -> None:
        server = self.boot()
        hold = self.hold("destroy")
        self.assertEqual(204, self.delete(server).status)  # concealed
        # the owner's delete began before: as in a request without rules
        self.assert_concealed(server)
        self.policy = replace(self.policy, deadline=3600)
        self.swept()
        self.assert_settled(server)
        # an operation of the owner's is stranded under the new owner
        with surgery.cell_of(server) as cell:
            instance = objects.Instance.get_by_uuid(cell, server)
            instance.task_state = "deleting"
            instance.save()
        done = operator.purge_one(self.mover, self.policy, server)
        self.assertEqual("purge", done.step)
        hold.wait_reached()
        hold.release()
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        names = [action["action"] for action in surgery.actions(server)]
        self.assertEqual(["resetState", "delete"], names[-2:])
        self.assertEqual([], self.swept())

    def test_settled_by_deadline(self) -> None:
        server, hold = self.boot_held()
        self.assertEqual(204, self.delete(server).status)
        self.policy = replace(self.policy, deadline=3600)
        self.assertEqual([], self.swept())
        self.policy = replace(self.policy, deadline=0)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        stranded = self.records(server)[-1].stranded
        self.assertIn("spawning", stranded)
        self.assertIn("do_build_and_run_instance", stranded)
        # and nobody else is concealed while one is overdue: see exclusions
        self.assertFalse(
            operator.find(self.mover, self.policy, server).completed
        )
        hold.release()


class TestCrashed(RequestCase):
    """A compute that died leaves an event unfinished for ever."""

    RULES = (
        '"server:delete:quarantine": "server.task_state:deleting or '
        'server.metadata:stale=yes"\n'
    )

    def test_stale_build_event(self) -> None:
        server = self.boot()
        metadata = {"metadata": {"stale": "yes"}}
        answer = self.ask("POST", f"/servers/{server}/metadata", metadata)
        self.assertEqual(200, answer.status)
        with surgery.cell_of(server) as cell:
            request_id = surgery.actions(server)[0]["request_id"]
            objects.InstanceActionEvent(
                cell,
                event="compute__do_build_and_run_instance",
                start_time=surgery.row(server)["created_at"],
                host="compute",
            ).create(server, request_id)
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)

    def test_host_down(self) -> None:
        server = self.boot()
        hold = self.hold("destroy")
        # a delete of the owner's that compute has begun and never ends
        self.assertEqual(204, self.delete(server).status)
        hold.wait_reached()
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        self.assertEqual([], self.swept())
        self.force_down()
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server)
        # purge: Nova's local delete, for the host is down
        operator.purge_one(self.mover, self.policy, server)
        self.wait_for(lambda: surgery.row(server)["deleted"], "deleted")
        self.assertEqual([], self.swept())


class TestOwnerAfterRelease(RequestCase):
    """What the owner of a released server may read, and may not."""

    def test_actions(self) -> None:
        server = self.boot()
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual(["settle"], self.swept())
        operator.release_one(self.mover, self.policy, server)
        path = f"/servers/{server}/os-instance-actions"
        answer = self.ask("GET", path)
        self.assertEqual(200, answer.status)
        found = answer.json["instanceActions"]
        self.assertEqual(
            ["quarantine", "quarantine", "quarantine", "create"],
            [action["action"] for action in found],
        )
        for action in found:
            detail = self.ask("GET", f"{path}/{action['request_id']}")
            self.assertEqual(200, detail.status)
            for secret in (KEEPER.project_id, KEEPER.user_id, "sweep"):
                self.assertNotIn(secret.encode(), detail.body)
            self.assertIsNone(action["message"])
            # an administrator's GET works too
            detail = self.ask(
                "GET", f"{path}/{action['request_id']}", who=base.OPERATOR
            )
            self.assertEqual(200, detail.status)


class TestGroup(RequestCase):
    """An anti-affinity group of two, on two hosts."""

    HOSTS = (("compute1", "cell1"), ("compute2", "cell1"))

    def test_replacement(self) -> None:
        group = self.owner.post_server_groups(
            {"name": "apart", "policy": "anti-affinity"}
        )["id"]
        hints = {"group": group}
        first, second = (self._grouped(hints) for _ in range(2))
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(group, self.records(first)[0].group)
        members = self.owner.get_server_group(group)["members"]
        self.assertEqual([second], members)
        third = self._grouped(hints)
        self.assertEqual(204, self.delete(third).status)
        self.assertEqual(2, len([s for s in self.swept() if s == "settle"]))
        operator.release_one(self.mover, self.policy, first)
        members = self.owner.get_server_group(group)["members"]
        self.assertEqual({first, second}, set(members))

    def _grouped(self, hints: dict[str, str]) -> str:
        body = {
            "server": self._build_server(networks="none"),
            "os:scheduler_hints": hints,
        }
        server = self.owner.post_server(body)
        self._wait_for_state_change(server, "ACTIVE")
        found: str = server["id"]
        return found


class TestNowhere(RequestCase):
    """Servers without a host: cell0, and those that are only wished for."""

    HOSTS = ()

    def _setup_compute_service(self) -> None:
        return None

    def test_cell0(self) -> None:
        server = self.boot(expected="ERROR")
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        self.assertEqual(["settle"], self.swept())
        self.assert_settled(server, holds=False)
        operator.purge_one(self.mover, self.policy, server)
        self.assert_gone(server)

    def test_build_request(self) -> None:
        self.scheduler.stop()
        self.stub_out(
            "nova.conductor.rpcapi.ComputeTaskAPI."
            "schedule_and_build_instances",
            lambda *args, **kwargs: None,
        )
        server = self.boot(expected=None)
        self.assertEqual([server], self.listed())
        # Nova's own: it does not look at the project of a build request
        answer = self.delete(server, who=base.FOREIGNER)
        self.assertEqual(403, answer.status)
        self.assertEqual(204, self.delete(server).status)
        self.assertEqual([], self.listed())
        found = objects.InstanceMapping.get_by_instance_uuid(
            context.get_admin_context(), server
        )
        self.assertEqual(OWNER.project_id, found.project_id)


class _DeathError(RuntimeError):
    """Stands for the death of the process."""


def _die(*args: object, **kwargs: object) -> None:
    raise _DeathError("the process died here")
