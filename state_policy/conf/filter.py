# SPDX-License-Identifier: Apache-2.0
"""Options of the group ``[state_policy]``: how the filter runs."""

from __future__ import annotations

from oslo_config import cfg

GROUP = cfg.OptGroup(
    "state_policy",
    title="State policy",
    help="""
How the filter runs. What may be done to a server is not said here but in the
policy file.
""",
)

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "policy_file",
        default="state_policy.yaml",
        help="""
The file with the rules.

A relative path is looked for beside the configuration files in use, then in
``/etc/state_policy``; the first that is found is read. The default file may
be absent, and every operation is then allowed; once it is in one of these
places it is read. A file that is named here, or in the paste file, must exist
when the service starts. The file is watched: a changed one is read anew,
checked whole and swapped whole, and a broken one leaves the last good rules in
force. One that moves to another of these places is followed. While rules of
one are in force, another in a place before it is not read by a service that
runs; an error is logged, for the next start reads that one.

Related options:

* ``policy_dirs``: further files, read after this one
""",
    ),
    cfg.MultiStrOpt(
        "policy_dirs",
        default=["state_policy.d"],
        help="""
Directories with further policy files.

Each file in them whose name does not start with a dot is read after
``policy_file``, in the order of the names; two files may not state one rule
differently. A relative path is looked for as that of ``policy_file``. The
default directory may be absent, and is read once it is there; one that is
named here or in the paste file must exist when the service starts. An empty
value means none. In the paste file several directories are separated by
commas.
""",
    ),
    cfg.StrOpt(
        "shadow_policy_file",
        help="""
A second file of rules that is evaluated beside the first and never acts.

For each request on which the two would differ a line is logged. Use it to try
new rules on real requests. Unset, nothing is evaluated beside. A relative
path is looked for as that of ``policy_file``; the file must exist.

The facts that only these rules need are read after those of the rules in
force. Where that fails nothing is compared. Where a request had to wait for
them longer than a second, nothing is compared for a minute, so that not every
request waits.
""",
    ),
    cfg.StrOpt(
        "driver",
        default="nova",
        help="""
The driver that reads the facts about servers and moves servers.

It is an entry point of the group ``state_policy.drivers``. ``nova`` works in
the process of the compute API; ``memory`` is meant for tests.
""",
    ),
    cfg.StrOpt(
        "mode",
        default="enforce",
        choices=[
            ("enforce", "verdicts are carried out"),
            (
                "warn",
                "verdicts are logged and named in a Warning header of the "
                "answer, and every request goes on to Nova",
            ),
            (
                "audit",
                "verdicts are logged only, and every request goes on to "
                "Nova unchanged",
            ),
        ],
        help="""
What happens to a verdict other than allow.

Whatever the mode, a server that is concealed by the quarantine stays
concealed. While it cannot be read whether a server is concealed, ``enforce``
and ``warn`` answer 503; ``audit`` lets the request go on and looks again
before the answer of Nova is sent.
""",
    ),
    cfg.StrOpt(
        "on_unknown",
        default="allow",
        choices=[
            ("allow", "the request goes on to Nova as it came"),
            ("refuse", "the request is answered with 503"),
        ],
        help="""
What happens when it cannot be decided whether the rules allow a request.

Something could not be read, then: a fact that a rule asks for, where the
server is, or whether the caller has the right at all. Nothing is ever moved,
held or escalated in such a case. With ``refuse``, an action whose body is
longer than ``max_body`` is refused too, with 413. Only in the mode
``enforce`` does this option refuse anything.

While the quarantine is enabled and it cannot be read whether a server is
concealed, requests on it are answered with 503 whatever this option says, in
the modes ``enforce`` and ``warn``. Not so those of administrators and, where
there is one quarantine project, of its members.

Related options:

* ``mode``
* ``max_body``
""",
    ),
    cfg.IntOpt(
        "retry_after",
        default=30,
        min=1,
        max=3600,
        help="""
The Retry-After header, in seconds, of a refusal that passes by itself.

It is used where nobody can know how long the state lasts, a task for
example. Where only an age is missing, the exact remaining time is sent.
""",
    ),
    cfg.BoolOpt(
        "explain",
        default=True,
        help="""
Whether Nova's own refusals are explained and servers can be asked about.

A 409 of Nova's on an operation keeps its code and its text, and gains since
when, by which action, and what is possible now. ``GET
/servers/{id}/allowed-actions`` answers with each operation, and why it is not
allowed. Both happen only in the mode ``enforce`` and while at least one rule
is stated: an empty policy file changes nothing.
""",
    ),
    cfg.StrOpt(
        "disable_by_file_path",
        help="""
While this file exists the filter decides nothing.

Create it to switch all rules off without a restart. Concealed servers stay
concealed and get their external events. Unset, there is no such switch. The
path must be absolute.
""",
    ),
    cfg.IntOpt(
        "max_body",
        default=114688,
        min=1024,
        max=16777216,
        help="""
The largest body of a server action that is read to find the action's name,
in bytes.

It should not be less than what the service accepts: a longer body is not
read, and so is no operation the rules know. ``on_unknown`` says whether it
is passed on, or refused with 413 where there are rules about actions.

Related options:

* ``on_unknown``
* ``[oslo_middleware] max_request_body_size``: what the service accepts; the
  defaults are the same
""",
    ),
    cfg.FloatOpt(
        "cell_timeout",
        default=5.0,
        min=0.1,
        max=60.0,
        help="""
Seconds that the database of a cell has for one reading of facts.

A cell that refuses or does not answer in time is taken for down: the fact
``server.cell_up`` is false for its servers and nothing else is known of them.

Related options:

* ``on_unknown``: what happens then to requests on which the rules ask for
  more than that
* ``[DEFAULT] cell_worker_thread_pool_size``: the threads in which Nova reads
  cells, and this service too
""",
    ),
    cfg.FloatOpt(
        "cell_retry",
        default=10.0,
        min=0.0,
        max=3600.0,
        help="""
Seconds for which a cell that was down is not asked again.

Requests on its servers are decided at once in that time. After it one request
tries the cell and the others still go without. Each reading that was given up
and still hangs doubles the pause, up to five minutes, so that Nova's threads
are not used up. Every process finds out for itself.

Related options:

* ``cell_timeout``: when a reading is given up
""",
    ),
]
