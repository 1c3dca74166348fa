# SPDX-License-Identifier: Apache-2.0
"""The benchmark measures what it says; its times are not tested."""

from benchmarks import analysis as benchmark
from state_policy.engine.analysis.compare import Comparison
from state_policy.engine.analysis.outcome import Analysis
from state_policy.engine.analysis.search import search


def test_it_has_120_rules_and_the_whole_space():
    old, new = benchmark.rule_set(1), benchmark.rule_set(2)
    assert len(old.sources) == len(new.sources) == benchmark.RULES == 120
    analysis = Analysis(old)
    sizes = [
        analysis.space.cells(found.axes)
        for found in analysis.outcomes.values()
    ]
    assert len(sizes) == 82
    assert sum(sizes) > 400_000
    assert search(analysis)
    found = Comparison(old, new)
    assert found.cells > sum(sizes)
    assert sum(map(found.count, found.differences)) > 100_000
    # Nothing was given up to be quick.
    assert not found.space.bounds
