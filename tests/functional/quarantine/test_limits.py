# SPDX-License-Identifier: Apache-2.0
"""Quotas in every way of counting, a full project, volumes, hourly limits."""

from __future__ import annotations

import datetime

import sqlalchemy as sa
from nova import context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.limit import local as local_limit
from oslo_limit import fixture as limit_fixture

from state_policy.quarantine.conceal import Result
from tests.functional import base
from tests.functional.harness import surgery
from tests.functional.quarantine.support import KEEPER, RequestCase


class LimitCase(RequestCase):
    """Each way of counting gets the same test."""

    def in_quarantine(self) -> int:
        """Return how many instances the quarantine project is charged for."""
        return self.used(base.INSPECTOR)["instances"]

    def limit_quarantine(self, instances: int) -> None:
        """Limit the quarantine project."""
        self.operator.update_quota(
            {"instances": instances}, project_id=KEEPER.project_id
        )

    def check_counts(self) -> None:
        """The owner's quota is back at once, the other project is charged."""
        first, second = self.boot(), self.boot()
        self.assertEqual(2, self.used()["instances"])
        self.limit_quarantine(1)
        self.assertEqual(204, self.delete(first).status)
        self.assert_concealed(first)
        self.assertEqual(1, self.used()["instances"])
        self.assertEqual(["settle"], self.swept())
        self.assertEqual(1, self.used()["instances"])
        self.assertEqual(1, self.in_quarantine())
        # the project is full: on_full says plain delete
        self.assertEqual(204, self.delete(second).status)
        self._wait_until_deleted({"id": second})
        self.assertEqual([], self.records(second))
        self.assertEqual(0, self.used()["instances"])


class TestLegacy(LimitCase):
    """Nova counts rows."""

    def test_counts(self) -> None:
        self.check_counts()


class TestPlacement(LimitCase):
    """Nova counts mappings and what placement has."""

    def setUp(self) -> None:
        """Count in placement."""
        self.flags(count_usage_from_placement=True, group="quota")
        super().setUp()

    def test_counts(self) -> None:
        self.check_counts()


class TestUnified(LimitCase):
    """Limits come from Keystone."""

    def setUp(self) -> None:
        """Have limits, and a lower one for the quarantine project."""
        super().setUp()
        self.flags(driver="nova.quota.UnifiedLimitsDriver", group="quota")
        registered = {
            local_limit.SERVER_METADATA_ITEMS: 128,
            local_limit.INJECTED_FILES: 5,
            local_limit.INJECTED_FILES_CONTENT: 10240,
            local_limit.INJECTED_FILES_PATH: 255,
            local_limit.KEY_PAIRS: 100,
            local_limit.SERVER_GROUPS: 10,
            local_limit.SERVER_GROUP_MEMBERS: 10,
            "servers": 4,
            "class:VCPU": 8,
            "class:MEMORY_MB": 32768,
            "class:DISK_GB": 250,
        }
        lower = {KEEPER.project_id: {"servers": 1}}
        self.useFixture(limit_fixture.LimitFixture(registered, lower))

    def limit_quarantine(self, instances: int) -> None:
        """Do nothing: the limit is in place."""
        self.assertEqual(1, instances)

    def test_counts(self) -> None:
        self.check_counts()


class TestDeny(RequestCase):
    """``on_full = deny``: refused with a sentence, nothing done."""

    POLICY = {"on_full": "deny"}

    def test_refused(self) -> None:
        server = self.boot()
        self.operator.update_quota(
            {"instances": 0}, project_id=KEEPER.project_id
        )
        answer = self.delete(server)
        self.assertEqual(409, answer.status)
        self.assertIn("no room", answer.message)
        self.assertNotIn(KEEPER.project_id, answer.message)
        self.assertEqual("30", answer.header("Retry-After"))
        self.assertEqual([server], self.listed())
        self.assertEqual([], self.records(server))


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
        server = self.boot()
        volume = self.cinder.IMAGE_BACKED_VOL
        self.owner.post_server_volume(
            server, {"volumeAttachment": {"volumeId": volume}}
        )
        self._wait_for_volume_attach(server, volume)
        self.assertEqual((volume,), self.mover.look(server).volumes)
        self.assertEqual(204, self.delete(server).status)
        self._wait_until_deleted({"id": server})
        self.assertEqual([], self.records(server))
        self.assertFalse(surgery.row(server)["hidden"])
