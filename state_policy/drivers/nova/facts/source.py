# SPDX-License-Identifier: Apache-2.0
"""What a source of facts is, and the time they are measured at."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_utils import timeutils

from state_policy.drivers.nova.server import Server
from state_policy.engine.facts import Age


@dataclass(frozen=True, slots=True)
class Source:
    """One relation of Nova's databases, and the facts read from it.

    :ivar keys: the facts
    :ivar read: gets an open connection and the server's row; one SELECT
    """

    keys: frozenset[str]
    read: Callable[[Any, Server], Mapping[str, Any]]


def now() -> datetime.datetime:
    """Return the time as Nova writes it: UTC, without a zone."""
    moment: datetime.datetime = timeutils.utcnow()
    return moment


def age(since: datetime.datetime | None, *, exact: bool = True) -> Age | None:
    """Return how long ago something was; None where nobody knows when.

    Never negative, whatever the clocks of other hosts say.
    """
    if since is None:
        return None
    seconds = (now() - since.replace(tzinfo=None)).total_seconds()
    return Age(max(0.0, seconds), exact)
