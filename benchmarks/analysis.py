# SPDX-License-Identifier: Apache-2.0
"""How long `check` and `diff` take over the whole space of 120 rules.

Engine time only: without starting Python and without reading files. The same
space is asked cell by cell beside it, as a loop over the engine's own
``decide`` would; that loop is timed on a sample. Run it as::

    python -m benchmarks.analysis
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from state_policy.engine.analysis import cells, table
from state_policy.engine.analysis import diagram as dd
from state_policy.engine.analysis.compare import Comparison
from state_policy.engine.analysis.outcome import Analysis
from state_policy.engine.analysis.search import search
from state_policy.engine.evaluate import decide
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ruleset import RuleSet
from state_policy.engine.states import TASK_STATES, VM_STATES
from state_policy.rules import load

RULES = 120
ROUNDS = 7
SAMPLE = 20_000

_AGES = ("10m", "30m", "60m", "4h", "1d")
_CONDITIONS = (
    "server.host_up:false",
    "server.locked:true",
    "server.migration:evacuation",
    "server.hypervisor:ironic",
    "server.tag:keep",
    "role:admin",
    "role:operator",
    "project.deletes:10m:>50",
)


def rule_set(seed: int) -> RuleSet:
    """Return a set of 120 rules: two for each of 60 operations."""
    rng = random.Random(seed)
    names = [n for n, op in OPERATIONS.items() if "read" not in op.classes]
    lines = []
    for name in names[: RULES // 2]:
        lines.append(f'"server:{name}": "{_refusal(rng)}"')
        suffix = rng.choice(("wait", "brake", "escalate", "evidence"))
        lines.append(f'"server:{name}:{suffix}": "{_condition(rng)}"')
    # There are 57 operations of other classes; classes make up the rest.
    for cls in ("any", "power", "disk", "network", "move", "repair"):
        if len(lines) < RULES:
            lines.append(f'"class:{cls}": "{_refusal(rng)}"')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.yaml")
        path.write_text("\n".join(lines[:RULES]))
        return load([path])


def _refusal(rng: random.Random) -> str:
    return (
        f"not ({_condition(rng)} and server.state_age:<{rng.choice(_AGES)}) "
        f"and not {rng.choice(_CONDITIONS)}"
    )


def _condition(rng: random.Random) -> str:
    states = rng.sample(VM_STATES, rng.randint(1, 4))
    tasks = rng.sample(("none", *TASK_STATES), rng.randint(1, 12))
    return (
        f"(server.vm_state:{','.join(states)} or "
        f"server.task_state:{','.join(tasks)})"
    )


def median(work: Callable[[], object]) -> float:
    """Return the median processor time of some runs, in seconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def per_cell(analysis: Analysis) -> float:
    """Return the processor time of one cell asked by itself."""
    rng = random.Random(1)
    space, names = analysis.space, tuple(OPERATIONS)
    asked = []
    for _ in range(SAMPLE):
        regions = {
            index: rng.randrange(len(axis.regions))
            for index, axis in enumerate(space.axes)
        }
        state = rng.choice(VM_STATES), rng.choice(dd.TASKS)
        asked.append(
            (rng.choice(names), cells.facts_of(space, regions, state))
        )
    start = time.process_time()
    for name, facts in asked:
        decide(analysis.rules, name, facts)
    return (time.process_time() - start) / SAMPLE


def main() -> None:
    """Measure and print."""
    old, new = rule_set(1).prepare(), rule_set(2).prepare()
    stated = len(old.sources)
    found = Analysis(old)
    size = sum(found.space.cells(o.axes) for o in found.outcomes.values())
    compared = Comparison(old, new)
    differing = sum(compared.count(item) for item in compared.differences)
    loop = per_cell(found)
    check = median(lambda: search(Analysis(old)))
    diff = median(lambda: Comparison(old, new).differences)
    rows = median(lambda: _table(found))
    print(f"{stated} rules, {len(OPERATIONS)} operations")
    _report("check", check, size, loop)
    _report("diff", diff, compared.cells, 2 * loop)
    print(f"{differing:,} cells differ")
    print(f"matrix for one caller and age: {rows * 1000:.0f} ms")


def _table(analysis: Analysis) -> None:
    choice, given = table.place(analysis.space, {})
    for outcomes in analysis.outcomes.values():
        table.row(analysis.space, outcomes, choice, given)


def _report(name: str, seconds: float, size: int, loop: float) -> None:
    print(
        f"{name}: {seconds * 1000:.0f} ms for {size:,} cells; cell by cell "
        f"{loop * size:.0f} s, ratio {loop * size / seconds:,.0f}"
    )


if __name__ == "__main__":
    main()
