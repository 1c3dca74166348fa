# SPDX-License-Identifier: Apache-2.0
"""Options of the group ``[state_policy_quarantine]``."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup(
    "state_policy_quarantine",
    title="Quarantine",
    help="""
Where deleted servers go that a rule sends into quarantine, and how long they
stay. Which servers these are is said by the rules ``server:delete:quarantine``
and ``server:force_delete:quarantine``.
""",
)

OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="""
Whether servers may be moved into quarantine.

While this is false, rules that ask for quarantine refuse to load.

Related options:

* ``projects``, ``user``: must be set then
""",
    ),
    cfg.ListOpt(
        "projects",
        default=[],
        help="""
Ids, not names, of the projects that take quarantined servers, in order of
preference.

Only operators should be members. The quotas of these projects limit what can
be in quarantine at a time. Every API host must have the same list, and a
project must stay in it while it holds servers: the list is what makes a
server concealed.

Related options:

* ``on_full``: what happens when the first is full
""",
    ),
    cfg.StrOpt(
        "user",
        help="""
Id of the user who owns servers in quarantine.

A service user without a password that anybody knows is best.
""",
    ),
    cfg.StrOpt(
        "on_full",
        default="plain_delete",
        choices=[
            ("next", "the next of the projects is tried"),
            ("plain_delete", "the request goes on to Nova as it came"),
            ("deny", "the request is refused with 409"),
        ],
        help="""
What happens when the quarantine project has no room for a server.

Related options:

* ``projects``: ``next`` needs at least two; when all are full the request
  goes on to Nova
""",
    ),
    cfg.StrOpt(
        "on_volumes",
        default="plain_delete",
        choices=[
            (
                "plain_delete",
                "the request goes on to Nova, which detaches the volumes",
            ),
            (
                "keep",
                "the server is concealed together with its volumes, which "
                "stay attached and in use until it is purged",
            ),
        ],
        help="""
What happens to a server with volumes whose host is alive.

Volumes cannot be taken from a running guest without risk, and their owner
cannot delete them while they are attached.
""",
    ),
    cfg.StrOpt(
        "on_ports",
        default="release",
        choices=[
            (
                "release",
                "the owner's ports are unbound and free again, and ports "
                "that Nova made are deleted",
            ),
            ("keep", "the ports stay bound until the server is purged"),
        ],
        help="""
What happens to the ports of a server that goes into quarantine.

Clients delete ports and networks as soon as the server is gone for them;
with ``keep`` that fails.
""",
    ),
    cfg.IntOpt(
        "retention",
        default=1209600,
        min=1,
        help="""
How long a server stays in quarantine at most, in seconds.

After that the sweep purges it whatever the rules say. The default is 14 days.

Related options:

* ``deadline``: must not be longer than this
""",
    ),
    cfg.IntOpt(
        "deadline",
        default=43200,
        min=1,
        max=82800,
        help="""
How long a server may stay concealed while an operation still runs on it, in
seconds.

After that the sweep gives it to the quarantine project although the operation
may then be stranded. While a server is concealed the image cache of its host
does not count it: keep this below ``[image_cache]
remove_unused_original_minimum_age_seconds`` of the compute hosts, 24 hours
unless changed. No server is put into quarantine while one is concealed for
longer than this, for then no sweep is running. The default is 12 hours.
""",
    ),
    cfg.IntOpt(
        "max_per_hour",
        default=100,
        min=0,
        help="""
How many servers may go into quarantine within an hour, 0 for any number.

The request for one more goes on to Nova as it came. It keeps the failure of a
whole cloud from filling the quarantine.
""",
    ),
    cfg.ListOpt(
        "excluded_projects",
        default=[],
        help="""
Ids, not names, of projects whose servers never go into quarantine.

Their requests go on to Nova as if the rule were false.
""",
    ),
    cfg.FloatOpt(
        "request_budget",
        default=2.5,
        min=0.1,
        max=30.0,
        help="""
Seconds that a request may spend on ports, placement and console tokens after
the server is concealed.

What is left over then is finished by the sweep.
""",
    ),
    cfg.IntOpt(
        "settle_after",
        default=60,
        min=0,
        max=3600,
        help="""
How old, in seconds, the newest action of a concealed server must be before
the sweep takes it that nothing runs any more.

An accepted request leaves no trace between the API and the compute host for
a moment; this is the allowance for it.
""",
    ),
]
