# SPDX-License-Identifier: Apache-2.0
"""Which of an operation's policies Nova asks about one request.

As of nova.api.openstack.compute.migrate_server and volume_attachments,
34.0.0. Where the request does not tell, the answer is all of them: a rule must
not be passed by because another policy than Nova's was asked. Nova still
refuses by itself whoever may not do what he asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from wsgiref.types import WSGIEnvironment

from state_policy.engine.operations import INSTEAD, Operation
from state_policy.engine.ports.answering import Answers
from state_policy.wsgi import body, doors

#: The microversions from which a cold migration knows of hosts, and from
#: which something beside the volume of an attachment can be changed.
_HOSTS, _ATTRIBUTES = (2, 56), (2, 85)

#: From a request, its body and microversion to whether Nova asks the policy
#: that stands instead of the gate. Raises where they have another form.
_Test = Callable[[WSGIEnvironment, Any, tuple[int, int]], bool]


def asked(
    environ: WSGIEnvironment,
    operation: Operation,
    answers: Answers,
    limit: int,
) -> tuple[str, ...]:
    """Return the policies of which Nova asks one; more where it is not told.

    :param limit: bytes of a body that are read
    """
    if operation.name not in INSTEAD:
        return operation.gates
    try:
        version = answers.version(environ)
        if version is None:
            return operation.gates
        content = json.loads(body.read(environ, limit).decode("utf-8"))
        other = _TESTS[operation.name](environ, content, version)
    except Exception:  # noqa: BLE001
        # Nova refuses such a body, or it is longer than what is read of one.
        # Whatever else it is, the rules must not be passed by.
        return operation.gates
    return (INSTEAD[operation.name] if other else operation.gate,)


def _cold(
    environ: WSGIEnvironment, content: Any, version: tuple[int, int]
) -> bool:
    argument = content["migrate"]
    if version < _HOSTS or argument is None:
        return False
    return bool(argument.get("host"))


def _live(
    environ: WSGIEnvironment, content: Any, version: tuple[int, int]
) -> bool:
    return bool(content["os-migrateLive"]["host"])


def _volume(
    environ: WSGIEnvironment, content: Any, version: tuple[int, int]
) -> bool:
    volume = content["volumeAttachment"]["volumeId"]
    attachment = doors.split(environ["PATH_INFO"])[-1]
    return version < _ATTRIBUTES or bool(attachment != volume)


_TESTS: dict[str, _Test] = {
    "migrate": _cold,
    "live_migrate": _live,
    "update_volume": _volume,
}
