# SPDX-License-Identifier: Apache-2.0
"""The names of Nova that this driver leans on, checked when it starts.

What is missing or has another signature turns the feature that needs it off,
with a line in the log; without what every request needs nothing starts.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Name:
    """A function, and the first of its parameters as they are used.

    :ivar feature: what does not work without it; None: nothing does
    """

    module: str
    path: str
    parameters: tuple[str, ...]
    feature: str | None = None


_NEEDED = """
nova.context get_admin_context read_deleted
nova.context scatter_gather_cells context cell_mappings timeout fn
nova.context is_user_context context
nova.context RequestContext.can self action target fatal
nova.context RequestContext.to_policy_values self
nova.db.main.api get_context_manager context
nova.objects.cell_mapping CellMapping._from_db_object context cell_mapping
nova.objects.build_request BuildRequest.get_by_instance_uuid context
nova.policy init policy_file
nova.network.neutron API._unbind_ports self context ports neutron
"""

_OPTIONAL = """
server.host_up nova.servicegroup.api API.service_is_up self member
native nova.compute.api check_instance_state vm_state task_state
native nova.compute.api reject_instance_state vm_state task_state
"""


def _names() -> Iterator[Name]:
    for line in _NEEDED.strip().splitlines():
        module, path, *parameters = line.split()
        yield Name(module, path, tuple(parameters))
    for line in _OPTIONAL.strip().splitlines():
        feature, module, path, *parameters = line.split()
        yield Name(module, path, tuple(parameters), feature)


#: All of them.
NAMES: tuple[Name, ...] = tuple(_names())


def differences() -> list[tuple[Name, str]]:
    """Return the names that are not as they are used, each with the reason."""
    found = []
    for name in NAMES:
        reason = _difference(name)
        if reason is not None:
            found.append((name, reason))
    return found


def _difference(name: Name) -> str | None:
    try:
        thing = importlib.import_module(name.module)
        for part in name.path.split("."):
            thing = getattr(thing, part)
    except (ImportError, AttributeError) as error:
        return str(error)
    # Nova's remotable methods keep the function they wrap.
    function = inspect.unwrap(thing)  # type: ignore[arg-type]
    seen = tuple(inspect.signature(function).parameters)
    if seen[:1] == ("cls",):
        seen = seen[1:]
    if seen[: len(name.parameters)] != name.parameters:
        return f"takes {', '.join(seen) or 'nothing'}"
    return None
