# SPDX-License-Identifier: Apache-2.0
"""The operator's commands, run in this process on the same databases."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any
from unittest import mock

from state_policy.cmd import app

#: What a command does first in a process of its own; here Nova is running.
_START = "state_policy.drivers.nova.process.start"


class CommandFailedError(AssertionError):
    """A command ended with another exit code than 0."""


def command(*words: str) -> str:
    """Run ``state-policy`` with these words; return its standard output.

    :raises CommandFailedError: with what it wrote to standard error
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch(_START),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = app.main(words)
    if code:
        raise CommandFailedError(
            f"state-policy {' '.join(words)}: exit code {code}. "
            f"{err.getvalue().strip()}"
        )
    return out.getvalue()


def listed() -> list[dict[str, Any]]:
    """Return the rows of ``quarantine list``."""
    return _json("quarantine", "list")


def shown(server_id: str) -> dict[str, Any]:
    """Return what ``quarantine show`` says of a server."""
    found: dict[str, Any] = _json("quarantine", "show", server_id)
    return found


def swept() -> list[str]:
    """Run ``quarantine sweep``; return the names of its steps."""
    return [row["Step"] for row in _json("quarantine", "sweep")]


def release(server_id: str) -> None:
    """Run ``quarantine release``."""
    _json("quarantine", "release", server_id)


def _json(*words: str) -> Any:
    return json.loads(command(*words, "-f", "json"))
