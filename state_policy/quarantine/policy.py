# SPDX-License-Identifier: Apache-2.0
"""How an operator wants servers to be moved: times in seconds.

The names and meanings are those of the options of the group
``[state_policy_quarantine]``; whoever composes the parts hands them in.
"""

from __future__ import annotations

from typing import Protocol


class Policy(Protocol):
    """What the logic of the move needs to know of the configuration."""

    @property
    def projects(self) -> tuple[str, ...]:
        """Ids of the quarantine projects, in order of preference."""

    @property
    def user(self) -> str | None:
        """Id of the user who owns what is in quarantine."""

    @property
    def on_full(self) -> str:
        """``next``, ``plain_delete`` or ``deny``."""

    @property
    def on_volumes(self) -> str:
        """``plain_delete`` or ``keep``."""

    @property
    def on_ports(self) -> str:
        """``release`` or ``keep``."""

    @property
    def retention(self) -> int:
        """How long a server stays at most."""

    @property
    def deadline(self) -> int:
        """How long a server stays concealed at most."""

    @property
    def max_per_hour(self) -> int:
        """How many servers may be concealed in an hour; 0: any number."""

    @property
    def excluded_projects(self) -> tuple[str, ...]:
        """Ids of projects whose servers are never moved."""

    @property
    def request_budget(self) -> float:
        """How long a request may take for what follows the move."""

    @property
    def settle_after(self) -> int:
        """How old the newest action is when nothing can begin any more."""
