# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.nova_suite``: run, count, compare."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.nova_suite import outcomes
from tests.nova_suite.suite import HERE, Suite

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
    options = parser.parse_args()
    version = importlib.metadata.version("nova")
    suite = Suite(version, options.jobs)
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
    wanted = dict.fromkeys(names, "success")
    others = {n: o for n, o in known.items() if n not in wanted}
    known = {n: o for n, o in known.items() if n in wanted}

    def keep(found: Mapping[str, str]) -> None:
        header = f"nova {suite.version}, without the filter"
        outcomes.save(record, {**others, **found}, header)

    class Keeping(_Run):
        def found(self) -> None:
            keep(self.outcomes)

    run = Keeping(suite, filtered=False, known=known)
    run.until(wanted)
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
        if name in chosen
    }
    if len(wanted) < len(names):
        print(f"{len(names) - len(wanted)} tests are not recorded; left out")
    run = _Run(suite, filtered=True, known={})
    run.until(wanted)
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
    """Runs tests until their outcomes are the wanted ones, or often enough.

    :ivar outcomes: the last outcome of each test
    :ivar requests: how many went through the filter
    """

    def __init__(
        self, suite: Suite, filtered: bool, known: Mapping[str, str]
    ) -> None:
        self.outcomes = dict(known)
        self.requests = 0
        self._suite = suite
        self._filtered = filtered

    def until(self, wanted: Mapping[str, str]) -> None:
        """Run those whose outcome is not the wanted one."""
        self._round(wanted, None)
        for size in (10, *[1] * (AGAIN - 1)):
            self._round(wanted, size)

    def _round(self, wanted: Mapping[str, str], size: int | None) -> None:
        """Run once what is not as wanted, skips left alone.

        :param size: tests in a process, for what is run again
        """
        names = [
            name
            for name in outcomes.differences(wanted, self.outcomes)
            if self.outcomes.get(name) != "skip" or wanted[name] == "fail"
        ]
        if not names:
            return
        print(f"{len(names)} {'tests' if size is None else 'again'}", end=" ")
        sizes = {} if size is None else {"size": size}
        for found, requests in self._suite.run(names, self._filtered, **sizes):
            self.outcomes.update(found)
            self.requests += requests
            print(f"[{outcomes.summary(found)}]", end=" ", flush=True)
            self.found()
        print(flush=True)

    def found(self) -> None:
        """Called after every batch."""


if __name__ == "__main__":
    sys.exit(main())
