# SPDX-License-Identifier: Apache-2.0
"""Who sends a request, as Nova's own middleware found out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from nova import context as nova_context
from oslo_context import context as oslo_context

from state_policy.engine.ports.reading import Caller

#: Where nova.api.auth leaves the context.
KEY = "nova.context"


def caller(environ: Mapping[str, Any]) -> Caller | None:
    """Return the caller; None where no context is in the environment."""
    context = environ.get(KEY)
    return None if context is None else of(context)


def of(context: Any) -> Caller:
    """Return the caller that a RequestContext of Nova stands for."""
    return Caller(
        credentials=dict(context.to_policy_values()),
        request_id=context.request_id or "",
        context=context,
    )


def made_of(credentials: Mapping[str, Any]) -> Caller:
    """Return the caller that these credentials make.

    Whether it is an administrator is for Nova's policy to say. The context
    of the thread stays as it is.
    """
    found = nova_context.RequestContext(overwrite=False, **credentials)
    return of(found)


@contextmanager
def kept() -> Iterator[None]:
    """Keep the context of the thread as it is.

    The log takes the request's id and its user from it. Targeting a cell
    (``nova.context.target_cell``, 34.0.0, and so ``scatter_gather_cells``)
    puts a copy of its own there.
    """
    current = oslo_context.get_current()
    try:
        yield
    finally:
        if current is not None:
            current.update_store()
