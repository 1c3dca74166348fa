# SPDX-License-Identifier: Apache-2.0
"""No server is moved while too many are; volumes."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from nova import context
from nova.db.api import api as api_db
from nova.db.api import models as api_models

from state_policy.quarantine import operator
from state_policy.quarantine.conceal import Result
from tests.functional.harness import surgery
from tests.functional.quarantine.support import RequestCase


class TestCrowded(RequestCase):
    """No server is moved while too many are, or nobody sweeps."""

    POLICY = {"max_per_hour": 1, "deadline": 3600}

    def test_limits(self) -> None:
        first, second, third = (self.boot() for _ in range(3))
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(204, self.delete(second).status)
        self._wait_until_deleted({"id": second})
        self.assertEqual([], self.records(second))
        # two hours later: the limit is over, but the first is overdue
        self._age_mapping(first)
        answer = self.conceal(third)
        self.assertEqual(Result.EXCLUDED, answer.result)
        self.assertIn("no sweep is running", answer.reason)
        self.assertEqual(["settle"], self.swept())
        self._age_mapping(first)
        self.assertEqual(Result.MOVED, self.conceal(third).result)

    def test_what_was_purged_does_not_count(self) -> None:
        """A purge changes mappings too; nobody comes by it."""
        first, second = self.boot(), self.boot()
        self.assertEqual(204, self.delete(first).status)
        self.assertEqual(["settle"], self.swept())
        operator.purge_one(self.mover, self.policy, first)
        self.wait_for(lambda: surgery.row(first)["deleted"], "deleted")
        self.assertEqual(Result.MOVED, self.conceal(second).result)

    def _age_mapping(self, server: str) -> None:
        mapping = api_models.InstanceMapping
        then = datetime.datetime.utcnow() - datetime.timedelta(hours=2)
        admin = context.get_admin_context()
        with api_db.context_manager.writer.using(admin):
            admin.session.execute(
                sa.update(mapping)
                .where(mapping.instance_uuid == server)
                .values(updated_at=then)
            )


class TestVolumes(RequestCase):
    """A server with volumes is deleted, unless its host is down."""

    def test_volumes(self) -> None:
        server, other = self.boot(), self.boot()
        volume = self.cinder.IMAGE_BACKED_VOL
        self._attach(server, volume)
        self.assertEqual((volume,), self.mover.look(server).volumes)
        self.assertEqual(204, self.delete(server).status)
        self._wait_until_deleted({"id": server})
        self.assertEqual([], self.records(server))
        self.assertFalse(surgery.row(server)["hidden"])
        # one that was detached counts no more, though its row stays
        self._attach(other, volume)
        self.owner.delete_server_volume(other, volume)
        self._wait_for_volume_detach(other, volume)
        self.assertEqual((), self.mover.look(other).volumes)
        self.assertEqual(204, self.delete(other).status)
        self.assert_concealed(other)

    def _attach(self, server: str, volume: str) -> None:
        self.owner.post_server_volume(
            server, {"volumeAttachment": {"volumeId": volume}}
        )
        self._wait_for_volume_attach(server, volume)
