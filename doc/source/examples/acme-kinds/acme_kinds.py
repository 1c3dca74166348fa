# SPDX-License-Identifier: Apache-2.0
"""Conditions of ours for state-policy."""

import os
from pathlib import Path

from state_policy.engine.literal import Change
from state_policy.rules.kinds import Kind

#: One host name a line; written by the people who do the maintenance.
HOSTS = Path(os.environ.get("ACME_MAINTENANCE", "/etc/acme/maintenance"))


class Maintenance(Kind):
    """``acme.maintenance:true``: the server's host is under maintenance.

    The value is a bool; None for a server without a host.
    """

    # Maintenance ends by itself: a refusal is a 409 with Retry-After.
    change = Change.PASSING
    # Given to ``read``, where it could be read itself.
    wants = frozenset({"server.host"})

    def compile(self):
        """Return the condition."""
        values = {"true": True, "false": False}
        if self.match not in values:
            raise ValueError(f"`{self.match}` is neither `true` nor `false`")
        wanted = values[self.match]

        def test(value):
            return value is wanted if isinstance(value, bool) else None

        return self.literal_for(test, samples=(True, False))

    @classmethod
    def read(cls, key, subject):
        """Return whether the host is in the file."""
        # Without the host nothing can be said: LookupError, not read.
        host = subject.facts["server.host"]
        if host is None:
            return None
        try:
            return host in HOSTS.read_text().split()
        except FileNotFoundError:
            return False
