# SPDX-License-Identifier: Apache-2.0
"""Nova's three ways to count what a project uses."""

from __future__ import annotations

from typing import Any

from nova.limit import local as local_limit
from oslo_limit import fixture as limit_fixture

#: What the flavor of the tests' servers takes.
ONE = {"instances": 1, "cores": 1, "ram": 512}
NOTHING = {"instances": 0, "cores": 0, "ram": 0}

#: Names of the resources under unified limits.
_UNIFIED = {"instances": "servers", "cores": "class:VCPU"}


class Quotas:
    """Limits in Nova's API database.

    :cvar AT_ONCE: whether the quarantine project is charged for a concealed
        server, or only when it is settled
    """

    AT_ONCE = True
    operator: Any

    def limit(self, project_id: str, **limits: int) -> None:
        """Set limits of a project: instances, cores."""
        self.operator.update_quota(limits, project_id=project_id)


class Legacy(Quotas):
    """The rows of servers are counted in every cell; Nova's default."""

    AT_ONCE = False


class FromPlacement(Quotas):
    """Cores and memory are counted in placement, servers by mappings."""

    def _setup_services(self) -> None:
        self.flags(  # type: ignore[attr-defined]
            count_usage_from_placement=True, group="quota"
        )
        super()._setup_services()  # type: ignore[misc]


class Unified(Quotas):
    """Limits in Keystone, usage from placement and by mappings."""

    def _setup_services(self) -> None:
        registered = {
            local_limit.SERVER_METADATA_ITEMS: 128,
            local_limit.INJECTED_FILES: 5,
            local_limit.INJECTED_FILES_CONTENT: 10240,
            local_limit.INJECTED_FILES_PATH: 255,
            local_limit.KEY_PAIRS: 100,
            local_limit.SERVER_GROUPS: 10,
            local_limit.SERVER_GROUP_MEMBERS: 10,
            "servers": 10,
            "class:VCPU": 20,
            "class:MEMORY_MB": 51200,
            "class:DISK_GB": 1000,
        }
        self.flags(  # type: ignore[attr-defined]
            driver="nova.quota.UnifiedLimitsDriver", group="quota"
        )
        self._limits = self.useFixture(  # type: ignore[attr-defined]
            limit_fixture.LimitFixture(registered, {})
        )
        super()._setup_services()  # type: ignore[misc]

    def limit(self, project_id: str, **limits: int) -> None:
        """Set limits of a project: instances, cores."""
        self._limits.projlimits[project_id] = {
            _UNIFIED[name]: value for name, value in limits.items()
        }
