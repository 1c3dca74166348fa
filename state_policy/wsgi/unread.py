# SPDX-License-Identifier: Apache-2.0
"""Answers to who must wait because something could not be read.

Nobody knows then who may be told what. So all of them say the same to the
owner, to a stranger, and of a server that does not exist.
"""

from __future__ import annotations

from typing import Any
from wsgiref.types import WSGIApplication, WSGIEnvironment

from state_policy.engine import sentence
from state_policy.engine.decision import Decision
from state_policy.engine.ports.answering import Answers
from state_policy.engine.ports.reading import Circumstances


def undecided(
    answers: Answers,
    environ: WSGIEnvironment,
    decision: Decision,
    server_id: str,
) -> WSGIApplication:
    """Return the refusal of an operation that could not be decided.

    :param decision: one without facts
    """
    nothing: tuple[Any, tuple[str, ...]] = (Circumstances(), ())
    return answers.fault(
        environ,
        decision.code or 503,
        sentence.tell(decision, server_id, *nothing),
        details={"state_policy": sentence.details(decision, *nothing)},
        retry_after=decision.retry_after,
    )


def unseen(
    answers: Answers,
    environ: WSGIEnvironment,
    server_id: str,
    retry_after: int,
) -> WSGIApplication:
    """Return the answer to any other request on a server.

    :param retry_after: seconds
    """
    return answers.fault(
        environ,
        503,
        f"Instance {server_id} cannot be read now. "
        f"Retry in {retry_after} seconds.",
        details={"state_policy": _code(retry_after)},
        retry_after=retry_after,
    )


def too_long(
    answers: Answers, environ: WSGIEnvironment, limit: int
) -> WSGIApplication:
    """Return the refusal of an action whose name was not looked for.

    The code is the one that services refuse long bodies with; there is
    nothing to wait for.

    :param limit: bytes of a body that are read
    """
    return answers.fault(
        environ,
        413,
        f"The body of a server action cannot be longer than {limit} bytes: "
        "the policy of this cloud could not be applied.",
        details={"state_policy": _code(None)},
    )


def _code(retry_after: int | None) -> dict[str, Any]:
    return {"code": "unreadable", "retry_after": retry_after}
