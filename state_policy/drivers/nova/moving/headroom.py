# SPDX-License-Identifier: Apache-2.0
"""Whether a project has room for a server, in each of Nova's ways to count.

Nothing is reserved. Where Nova counts the rows of its cells it counts neither
a concealed server (it is hidden) nor one in a cell that is silent, and waits a
minute for such a cell (``nova.context.CELL_TIMEOUT``). So the rows are counted
here, each cell in its budget, and the number of servers is never taken for
less than the mappings say. The limits, and what is over them, are Nova's
(nova.objects.Quotas, nova.limit, 34.0.0).
"""

from __future__ import annotations

from typing import Any

from nova import conf as nova_conf
from nova import exception, objects
from nova.compute import utils as compute_utils
from nova.limit import placement as placement_limits
from nova.limit import utils as limit_utils
from nova.quota import QUOTAS

from state_policy.drivers.nova.cells import Cells
from state_policy.drivers.nova.moving import contexts
from state_policy.engine.ports.moving import Owner, Usage, Usages


def lacking(cells: Cells, server_id: str, target: Owner) -> str | None:
    """Return why a project cannot take a server, None where it can.

    :raises Exception: where it cannot be counted
    """
    context = contexts.admin("no")
    flavor = _flavor(cells, server_id)
    try:
        if limit_utils.use_unified_limits():
            _check_unified(context, flavor, target)
        elif nova_conf.CONF.quota.count_usage_from_placement:
            compute_utils.check_num_instances_quota(
                context,
                flavor,
                1,
                1,
                project_id=target.project_id,
                user_id=target.user_id,
            )
        else:
            _check_rows(cells, context, flavor, target)
    except (exception.TooManyInstances, exception.OverQuota) as e:
        return f"no more of {_named(e.kwargs.get('overs'))}"
    return None


def usages(cells: Cells, project_id: str) -> Usages:
    """Return what a project uses of its limits, by the same count."""
    context = contexts.admin("no")
    by_rows = not (
        limit_utils.use_unified_limits()
        or nova_conf.CONF.quota.count_usage_from_placement
    )
    found = QUOTAS.get_project_quotas(context, project_id, usages=not by_rows)
    used = {name: int(one.get("in_use", 0)) for name, one in found.items()}
    silent: tuple[str, ...] = ()
    if by_rows:
        counts, silent = _rows(cells, context, project_id, None)
        used = counts["project"]
    resources = (
        Usage(name, used[name], _limit(found[name]["limit"]))
        for name in ("instances", "cores", "ram")
        if name in found
    )
    return Usages(tuple(resources), silent)


def _limit(value: Any) -> int | None:
    return None if value < 0 else int(value)


def _named(overs: Any) -> str:
    if isinstance(overs, str) or not overs:
        return overs or "what its limits count"
    return ", ".join(sorted(overs))


def _flavor(cells: Cells, server_id: str) -> Any:
    with contexts.gone(server_id):
        return cells.call(
            contexts.cell_mapping_of(server_id),
            lambda cell: (
                objects.Instance.get_by_uuid(
                    cell, server_id, expected_attrs=["flavor"]
                ).flavor
            ),
            contexts.admin("no"),
        )


def _check_unified(context: Any, flavor: Any, target: Owner) -> None:
    check = getattr(
        placement_limits, "enforce_num_instances_and_resources", None
    )
    if check is not None:
        spec = objects.RequestSpec(flavor=flavor, is_bfv=False)
        check(context, target.project_id, spec, 1, 1)
        return
    # Nova 33 and older.
    placement_limits.enforce_num_instances_and_flavor(
        context, target.project_id, flavor, False, 1, 1
    )


def _check_rows(
    cells: Cells, context: Any, flavor: Any, target: Owner
) -> None:
    user_id = _limited_user(context, target)
    used, _ = _rows(cells, context, target.project_id, user_id)
    wanted = {"instances": 1, "cores": flavor.vcpus, "ram": flavor.memory_mb}
    values: dict[str, dict[str, int]] = {
        f"{scope}_values": {
            name: count + wanted[name] for name, count in counts.items()
        }
        for scope, counts in used.items()
    }
    users = {"user_id": user_id} if user_id else {}
    objects.Quotas.limit_check_project_and_user(
        context, project_id=target.project_id, **users, **values
    )


def _limited_user(context: Any, target: Owner) -> str | None:
    """Return the user, where the project has limits of his own for him."""
    limits = objects.Quotas.get_all_by_project_and_user(
        context, target.project_id, target.user_id
    )
    if any(name in limits for name in ("instances", "cores", "ram")):
        return target.user_id
    return None


def _rows(
    cells: Cells, context: Any, project_id: str, user_id: str | None
) -> tuple[dict[str, dict[str, int]], tuple[str, ...]]:
    """Count a project's servers, cores and memory, as Nova does.

    :returns: by ``project`` and, where one is asked for, ``user``; the names
        of the cells that did not answer
    """
    mapped = objects.InstanceMappingList.get_counts(
        context, project_id, user_id=user_id
    )
    in_cells = list(
        objects.CellMappingList.get_by_project_id(context, project_id)
    )
    answers = cells.each(
        in_cells,
        lambda cell: objects.InstanceList.get_counts(
            cell, project_id, user_id=user_id
        ),
        context,
    )
    silent = tuple(
        f"cell {cell.name or cell.uuid}"
        for cell in in_cells
        if cell.uuid in answers.failed
    )
    total: dict[str, dict[str, int]] = {}
    for scope, mappings in mapped.items():
        total[scope] = {
            name: sum(found[scope][name] for found in answers.found.values())
            for name in ("instances", "cores", "ram")
        }
        total[scope]["instances"] = max(
            total[scope]["instances"], mappings["instances"]
        )
    return total, silent
