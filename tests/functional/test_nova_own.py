# SPDX-License-Identifier: Apache-2.0
"""About sixty of Nova's own functional tests, behind an inert filter.

They are in Nova's wheel. Many more are run by ``make test-nova-suite``, and
compared with a run without the filter; these here all pass without it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import fixtures
from nova.tests.functional import (
    test_instance_actions,
    test_legacy_v2_compatible_wrapper,
    test_multiattach,
    test_servers,
)
from nova.tests.functional.wsgi import test_servers as test_wsgi_servers

from tests.functional.harness.pytesting import KeepsTestMethod
from tests.nova_suite import behind, counted


class _Behind(KeepsTestMethod):
    """Puts the filter before Nova's application and looks that it was used."""

    def setUp(self) -> None:
        case: Any = self
        self._counted = counted.count()
        case.addCleanup(self._assert_went_through)
        directory = Path(tempfile.mkdtemp(dir=self._home(case)))
        file = behind.write(directory, filtered=True)
        case.useFixture(
            fixtures.EnvironmentVariable("OS_WSGI__API_PASTE_CONFIG", file)
        )
        super().setUp()  # type: ignore[misc]

    @staticmethod
    def _home(case: Any) -> str:
        home: str = case.useFixture(fixtures.TempDir()).path
        return home

    def _assert_went_through(self) -> None:
        if counted.count() <= self._counted:
            raise AssertionError("no request went through the filter")


class TestServers(_Behind, test_servers.ServersTestV21):
    """Create, read, change, delete; locks, actions, lists."""


class TestServersV219(_Behind, test_servers.ServersTestV219):
    """Descriptions."""


class TestRebuild(_Behind, test_servers.ServerRebuildTestCase):
    """Rebuilds."""


class TestPreScheduling(
    _Behind, test_wsgi_servers.ServersPreSchedulingTestCase
):
    """Servers that are only a build request."""


class TestInstanceActions(
    _Behind, test_instance_actions.InstanceActionsTestV221
):
    """Instance actions, of deleted servers too."""


class TestInstanceActionFaults(
    _Behind, test_instance_actions.InstanceActionEventFaultsTestCase
):
    """What an action's events tell about a failure."""


class TestLegacy(
    _Behind, test_legacy_v2_compatible_wrapper.LegacyV2CompatibleTestBase
):
    """The second pipeline."""


class TestMultiattach(_Behind, test_multiattach.TestMultiattachVolumes):
    """A volume at two servers."""
