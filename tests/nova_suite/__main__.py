# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.nova_suite``: run, count, compare."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.nova_suite import behind, counted, outcomes

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / ".nova-suite"
PREFIX = "nova.tests.functional."
#: How often a test with another outcome is run again, alone: Nova's tests
#: wait for threads, and on a busy machine some give up.
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
    options = parser.parse_args()
    version = importlib.metadata.version("nova")
    suite = Suite(version, options.jobs)
    names = suite.names(options.only)
    record = HERE / f"results-{version}.txt"
    print(f"nova {version}: {len(names)} tests", flush=True)
    if options.record:
        return _record(suite, names, record)
    return _compare(suite, names, record)


def _record(suite: Suite, names: Sequence[str], record: Path) -> int:
    found, _ = suite.run(names, filtered=False)
    outcomes.save(record, found, f"nova {suite.version}, without the filter")
    print(f"without the filter: {outcomes.summary(found)}")
    return 0


def _compare(suite: Suite, names: Sequence[str], record: Path) -> int:
    if not record.exists():
        print(f"{record.name} is missing: nothing to compare with")
        return 2
    chosen = set(names)
    wanted = {
        name: outcome
        for name, outcome in outcomes.load(record).items()
        if name in chosen
    }
    found, requests = suite.run(names, filtered=True)
    for _ in range(AGAIN):
        differing = outcomes.differences(wanted, found)
        if not differing:
            break
        print(f"{len(differing)} differ; they are run again, alone")
        again, more = suite.run(differing, filtered=True, jobs=1)
        found |= again
        requests += more
    differing = outcomes.differences(wanted, found)
    print(f"without the filter: {outcomes.summary(wanted)}")
    print(f"behind the filter:  {outcomes.summary(found)}")
    print(f"requests that went through the filter: {requests}")
    for name in differing:
        print(f"DIFFERS {name}: {wanted.get(name)} -> {found.get(name)}")
    print(f"{len(differing)} differences")
    return 1 if differing or not requests else 0


class Suite:
    """Nova's functional tests of one version, unpacked.

    :param jobs: processes to run at a time
    """

    def __init__(self, version: str, jobs: int) -> None:
        self.version = version
        self._jobs = jobs
        self._source = WORK / f"nova-{version}"
        if not (self._source / "nova").is_dir():
            self._fetch()

    def names(self, only: str | None = None) -> list[str]:
        """Return the ids of the selected tests, those of this process's
        threading mode that Nova itself excludes left out."""
        listed = self._stestr("list").stdout.decode().split()
        lines = (HERE / "selection.txt").read_text().splitlines()
        wanted = "|".join(
            line for line in lines if line and not line.startswith("#")
        )
        chosen = re.compile(f"{re.escape(PREFIX)}(?:{wanted})")
        excluded = self._excluded()
        return [
            name
            for name in listed
            if chosen.match(name)
            and name not in excluded
            and (only is None or re.search(only, name))
        ]

    def run(
        self, names: Sequence[str], filtered: bool, jobs: int | None = None
    ) -> tuple[dict[str, str], int]:
        """Run tests; return the outcomes and the number of requests that
        went through the filter."""
        with tempfile.TemporaryDirectory() as directory:
            where = Path(directory)
            chosen = where / "names"
            chosen.write_text("\n".join(names))
            counts = where / "counts"
            counts.mkdir()
            self._stestr(
                "run",
                "--subunit",
                f"--concurrency={jobs or self._jobs}",
                f"--load-list={chosen}",
                environment={
                    "OS_WSGI__API_PASTE_CONFIG": behind.write(where, filtered),
                    counted.WHERE: str(counts),
                },
                output=where / "stream",
            )
            requests = sum(int(f.read_text()) for f in counts.iterdir())
            with (where / "stream").open("rb") as stream:
                return outcomes.parse(stream), requests

    def _excluded(self) -> set[str]:
        file = self._source / "threading_functional_test_excludes.txt"
        return set(file.read_text().split()) if file.exists() else set()

    def _fetch(self) -> None:
        """Get Nova's source distribution and unpack it."""
        WORK.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet"]
        command += ["--no-deps", "--no-binary=nova", "--no-build-isolation"]
        subprocess.run(
            [*command, f"--dest={WORK}", f"nova=={self.version}"], check=True
        )
        with tarfile.open(WORK / f"nova-{self.version}.tar.gz") as archive:
            archive.extractall(WORK, filter="data")
        self._stestr("init")

    def _stestr(
        self,
        command: str,
        *arguments: str,
        environment: dict[str, str] | None = None,
        output: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        found = os.environ | (environment or {})
        found.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
        found["PYTHONPATH"] = str(ROOT)
        words = [sys.executable, "-m", "stestr"]
        words += ["--test-path=./nova/tests/functional", command, *arguments]
        with open(output or os.devnull, "wb") as stream:
            return subprocess.run(
                words,
                cwd=self._source,
                env=found,
                stdout=stream if output else subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
            )


if __name__ == "__main__":
    sys.exit(main())
