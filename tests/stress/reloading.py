# SPDX-License-Identifier: Apache-2.0
"""Decisions while the rules change: each is one set's, none a mixture.

``python -m tests.stress.reloading --eventlet`` runs it in green threads.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

#: Two sets that differ in every answer; one half of each with one half of
#: the other gives answers that neither gives.
FIRST = """\
"server:stop": "not rule:shut"
"server:start": "rule:shut"
"server:delete": "rule:shut"
"server:delete:quarantine": "rule:shut and rule:building"
"server:rebuild": "rule:shut and not rule:shut"
"shut": "server.host_up:true"
"""
SECOND = FIRST.replace("host_up:true", "host_up:false").replace(
    '"rule:shut and not rule:shut"', '"rule:shut or not rule:shut"'
)
BROKEN = (
    '"server:stop": "not rule:shutt"',
    '"server:stop": !',
    '"server:stop": "server.host_up:ture"',
    "\x00",
)
ASKED = ("stop", "start", "delete", "rebuild", "pause")
FACTS = {
    "server.host_up": True,
    "server.vm_state": "building",
    "server.task_state": "spawning",
}


@dataclass
class Result:
    """What a run came to.

    :ivar decisions: how many were made
    :ivar reloads: how often the set in force changed
    :ivar refusals: how often a broken file was refused
    :ivar seen: how many decisions each of the two sets made
    :ivar wrong: answers that neither set gives
    """

    decisions: int
    reloads: int
    refusals: int
    seen: list[int]
    wrong: list[str]


class Run:
    """One run: a writer and many who decide."""

    def __init__(self, directory: Path, threads: int) -> None:
        from state_policy.engine.evaluate import decide
        from state_policy.rules import Store, load

        self._decide, self._load = decide, load
        self._path = directory / "rules.yaml"
        self._next = directory / "next"
        self._threads = threads
        self.answers = []
        for text in (FIRST, SECOND):
            self._write(text)
            self.answers.append(self._ask(load([self._path])))
        self._store = Store(
            self._path, interval=0.0002, loader=self._slow_load
        )
        self._writing = True
        self._counts = [[0, 0] for _ in range(threads)]
        self._wrong: list[str] = []

    def _slow_load(self, files: Sequence[Path]):
        # Lets others run in the middle; under eventlet nothing else would.
        time.sleep(0)
        rules = self._load(files)
        time.sleep(0)
        return rules

    def _write(self, text: str) -> None:
        self._next.write_text(text)
        self._next.replace(self._path)

    def _ask(self, rules) -> tuple[tuple[str, int | None, str], ...]:
        found = (self._decide(rules, name, FACTS) for name in ASKED)
        return tuple((d.verdict.value, d.code, d.revision) for d in found)

    def _work(self, counts: list[int], quota: int) -> None:
        done = 0
        while self._writing or done < quota:
            found = self._ask(self._store.current())
            try:
                counts[self.answers.index(found)] += len(ASKED)
            except ValueError:
                self._wrong.append(repr(found))
            done += len(ASKED)
            if done % 50 == 0:
                time.sleep(0)

    def _change(self, reloads: int) -> None:
        """Write files until so many were taken or refused."""
        texts = [FIRST, BROKEN[0], SECOND, BROKEN[1]]
        texts += [FIRST, BROKEN[2], SECOND, BROKEN[3]]
        for text in itertools.cycle(texts):
            before = self._store.reloads + self._store.refusals
            if before >= reloads:
                return
            self._write(text)
            stop = time.monotonic() + 5
            while self._store.reloads + self._store.refusals == before:
                if time.monotonic() > stop:
                    self._wrong.append(f"not taken: {text}")
                    return
                time.sleep(0.0005)

    def __call__(self, reloads: int, decisions: int) -> Result:
        quota = -(-decisions // self._threads)
        workers = [
            threading.Thread(target=self._work, args=(counts, quota))
            for counts in self._counts
        ]
        for worker in workers:
            worker.start()
        try:
            self._change(reloads)
        finally:
            self._writing = False
        for worker in workers:
            worker.join()
        seen = [sum(found) for found in zip(*self._counts, strict=True)]
        return Result(
            sum(seen) + len(self._wrong),
            self._store.reloads,
            self._store.refusals,
            seen,
            self._wrong[:5],
        )


def run(threads: int, reloads: int, decisions: int) -> Result:
    """Decide in threads while the file changes.

    :param reloads: at least so many changed files are taken or refused
    :param decisions: at least so many decisions are made
    """
    with tempfile.TemporaryDirectory() as directory:
        return Run(Path(directory), threads)(reloads, decisions)


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print the result as JSON; exit 0 if no answer was a mixture."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--reloads", type=int, default=1000)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--eventlet", action="store_true")
    options = parser.parse_args(argv)
    if options.eventlet:
        import eventlet

        eventlet.monkey_patch()
    result = run(options.threads, options.reloads, options.decisions)
    print(json.dumps(asdict(result)))
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
