# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.nova_suite``: run, count, compare."""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from tests.nova_suite import outcomes
from tests.nova_suite.suite import BATCH, HERE, Suite

#: How often a test is run again whose outcome is not the wanted one, in a
#: process of its own: Nova's tests wait for threads, and on a busy machine
#: some give up.
AGAIN = 3


def main() -> int:
    """Run the selected tests; return 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.nova_suite")
    parser.add_argument(
        "--record",
        action="store_true",
        help="run without the filter and keep the results",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", help="regular expression on test ids")
    parser.add_argument(
        "--limit", type=int, help="only so many of the tests, spread evenly"
    )
    parser.add_argument(
        "--looking",
        action="store_true",
        help="with rules that look at every server and refuse nothing; tests "
        "that count Nova's own reads may differ then",
    )
    options = parser.parse_args()
    version = importlib.metadata.version("nova")
    suite = Suite(version, options.jobs, options.looking)
    names = suite.names(options.only)
    if options.limit:
        names = names[:: max(1, len(names) // options.limit)]
    record = HERE / f"results-{version}.txt"
    if options.record:
        return _record(suite, names, record)
    return _compare(suite, names, record)


def _record(suite: Suite, names: Sequence[str], record: Path) -> int:
    """Run without the filter what is not recorded as passed; keep it."""
    known = outcomes.load(record) if record.exists() else {}
    header = f"nova {suite.version}, without the filter"
    run = _Run(
        suite,
        filtered=False,
        known=known,
        keep=lambda found: outcomes.save(record, found, header),
    )

    def missing() -> set[str]:
        failed = {n for n, o in run.outcomes.items() if o == "fail"}
        seen = {outcomes.plain(name) for name in run.outcomes.keys() - failed}
        return {n for n in names if n not in seen} | failed

    run.until_none(missing)
    print(f"without the filter: {outcomes.summary(run.outcomes)}")
    return 0


def _compare(suite: Suite, names: Sequence[str], record: Path) -> int:
    """Run behind the filter what is recorded; return 1 for a difference."""
    if not record.exists():
        print(f"{record.name} is missing: there is nothing to compare with")
        return 2
    chosen = set(names)
    wanted = {
        name: outcome
        for name, outcome in outcomes.load(record).items()
        if outcomes.plain(name) in chosen
    }
    left_out = chosen - {outcomes.plain(name) for name in wanted}
    if left_out:
        print(f"{len(left_out)} tests are not recorded and left out")
    run = _Run(suite, filtered=True)
    run.until_none(lambda: outcomes.differences(wanted, run.outcomes))
    return _report(suite, wanted, run)


def _report(suite: Suite, wanted: Mapping[str, str], run: _Run) -> int:
    differing = outcomes.differences(wanted, run.outcomes)
    print(f"nova {suite.version}, {len(wanted)} of its functional tests")
    print(f"without the filter: {outcomes.summary(wanted)}")
    print(f"behind the filter:  {outcomes.summary(run.outcomes)}")
    print(f"requests that went through the filter: {run.requests}")
    for name in differing:
        now = run.outcomes.get(name)
        print(f"DIFFERS {name}: {wanted.get(name)} -> {now}")
    print(f"{len(differing)} differences")
    return 1 if differing or not wanted or not run.requests else 0


class _Run:
    """Runs tests until nothing is missing, or often enough.

    :ivar outcomes: the last outcome of each test
    :ivar requests: how many went through the filter
    """

    def __init__(
        self,
        suite: Suite,
        filtered: bool,
        known: Mapping[str, str] | None = None,
        keep: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self.outcomes = dict(known or {})
        self.requests = 0
        self._suite = suite
        self._filtered = filtered
        self._keep = keep

    def until_none(self, missing: Callable[[], Iterable[str]]) -> None:
        """Run what is missing; after that again, in small processes."""
        for size in (BATCH, 10, *[1] * (AGAIN - 1)):
            names = _mixed({outcomes.plain(name) for name in missing()})
            if names:
                print(f"{len(names)} tests, {size} a process:", flush=True)
                self._round(names, size)

    def _round(self, names: Sequence[str], size: int) -> None:
        for found, requests in self._suite.run(names, self._filtered, size):
            self.outcomes.update(found)
            self.requests += requests
            print(f"  {outcomes.summary(found)}", flush=True)
            self._keep(self.outcomes)


def _mixed(names: Iterable[str]) -> list[str]:
    """Return names in an order that is always the same and mixes modules.

    Long ones are not all at the end, and a run that is broken off has seen
    something of everything.
    """
    return sorted(names, key=lambda n: hashlib.sha256(n.encode()).digest())


if __name__ == "__main__":
    sys.exit(main())
