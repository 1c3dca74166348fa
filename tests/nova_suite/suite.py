# SPDX-License-Identifier: Apache-2.0
"""Nova's functional tests of one version: fetched, listed, run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tests.nova_suite import behind, counted, outcomes

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / ".nova-suite"
TESTS = "./nova/tests/functional"
PREFIX = "nova.tests.functional."
#: Tests a process runs at most. A thread that is late in one of Nova's tests
#: may shut down its pools for all that follow in the process.
BATCH = 20

#: Outcomes, and how many requests went through the filter.
Ran = tuple[dict[str, str], int]


class Suite:
    """Nova's source distribution, and its functional tests.

    :param version: Nova's
    :param jobs: processes to run at a time
    :param looking: whether the filter has rules that look at servers
    """

    def __init__(self, version: str, jobs: int, looking: bool = False) -> None:
        self.version = version
        self._looking = looking
        self._jobs = jobs
        self._source = WORK / f"nova-{version}"
        if not (self._source / "nova").is_dir():
            self._fetch()

    def names(self, only: str | None = None) -> list[str]:
        """Return the ids of the selected tests, but those that Nova itself
        leaves out in native threads."""
        lines = (HERE / "selection.txt").read_text().splitlines()
        wanted = "|".join(
            line for line in lines if line and not line.startswith("#")
        )
        chosen = re.compile(f"{re.escape(PREFIX)}(?:{wanted})")
        excluded = self._excluded()
        return [
            name
            for name in self._listed()
            if chosen.match(name)
            and name not in excluded
            and (only is None or re.search(only, name))
        ]

    def run(
        self, names: Sequence[str], filtered: bool, size: int = BATCH
    ) -> Iterator[Ran]:
        """Run tests, some processes at a time; yield what each found."""
        batches = [
            names[begin : begin + size] for begin in range(0, len(names), size)
        ]
        with ThreadPoolExecutor(self._jobs) as pool:
            waiting = [
                pool.submit(self._batch, batch, filtered) for batch in batches
            ]
            for done in as_completed(waiting):
                yield done.result()

    def _batch(self, names: Sequence[str], filtered: bool) -> Ran:
        with tempfile.TemporaryDirectory() as directory:
            where = Path(directory)
            chosen = where / "names"
            chosen.write_text("\n".join(names))
            counts = where / "counts"
            counts.mkdir()
            self._runner(
                "--load-list",
                str(chosen),
                environment={
                    "OS_WSGI__API_PASTE_CONFIG": behind.write(
                        where, filtered, self._looking
                    ),
                    counted.WHERE: str(counts),
                },
                output=where / "stream",
            )
            requests = sum(int(f.read_text()) for f in counts.iterdir())
            with (where / "stream").open("rb") as stream:
                return outcomes.parse(stream), requests

    def _listed(self) -> list[str]:
        with tempfile.TemporaryDirectory() as directory:
            output = Path(directory, "stream")
            self._runner("--list", output=output)
            with output.open("rb") as stream:
                return outcomes.listed(stream)

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

    def _runner(
        self,
        *arguments: str,
        output: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Run stestr's own runner; its subunit stream goes to a file."""
        found = os.environ | (environment or {})
        found.setdefault("OS_NOVA_DISABLE_EVENTLET_PATCHING", "true")
        found["PYTHONPATH"] = str(ROOT)
        words = [sys.executable, "-m", "stestr.subunit_runner.run"]
        words += ["discover", "-t", "./", TESTS, *arguments]
        with output.open("wb") as stream:
            subprocess.run(
                words,
                cwd=self._source,
                env=found,
                stdout=stream,
                stderr=subprocess.DEVNULL,
                check=False,
            )
