# SPDX-License-Identifier: Apache-2.0
"""The rule set in force, taken anew when its files change.

A set is swapped whole: who asks once for ``current`` decides a request by
one set. The last good set stays while the files are faulty.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from state_policy.engine.ruleset import RuleSet
from state_policy.rules.faults import Fault, RulesError
from state_policy.rules.files import absent, sources
from state_policy.rules.loader import load

LOG = logging.getLogger(__name__)

#: Seconds between two looks at the files.
INTERVAL = 1.0

#: Seconds by which stamps of files may lag behind the clock, and more.
_COARSE = 1.0

#: So many faults go to the log; ``state-policy check`` tells them all.
_TOLD = 50

_Path = str | os.PathLike[str]

#: What tells that a file changed; an older time is a change too.
_Signature = tuple[tuple[Path, tuple[int, ...]], ...]


class Store:
    """Keeps the rule set of a file and of directories up to date.

    :ivar faults: what is wrong with the files now; empty while the rule set
        in force is theirs
    :ivar refusals: how often changed files were refused, a fault that stays
        counting once
    :ivar reloads: how often a changed set was taken
    """

    def __init__(
        self,
        policy_file: _Path | None,
        policy_dirs: Sequence[_Path] = (),
        *,
        places: Mapping[Path, Sequence[Path]] | None = None,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        loader: Callable[[Sequence[Path]], RuleSet] = load,
    ) -> None:
        """Load the files.

        :param places: of a file or directory: where it may be, the most
            wanted first. The first that is found counts, but for a place
            that rules in force are from: it stays the one while it is there
        :param interval: seconds between two looks at the files
        :param wall: the time that files are stamped with
        :raises RulesError: where they are faulty
        """
        self._where = (policy_file, tuple(policy_dirs))
        self._places = places or {}
        self._interval, self._clock, self._loader = interval, clock, loader
        self._wall = wall
        self._lock = threading.Lock()
        self.faults: tuple[Fault, ...] = ()
        self.refusals = self.reloads = 0
        self._held: frozenset[Path] = frozenset()
        self._split: tuple[tuple[Path, Path], ...] = ()
        self._told_split: tuple[tuple[Path, Path], ...] = ()
        self._seen = self._taken = self._look()
        self._rules = loader([path for path, _ in self._seen])
        self._held = _held(self._rules)
        self._next = clock() + interval
        if not self._seen:
            self._tell_waiting()

    def current(self) -> RuleSet:
        """Return the rule set in force.

        Takes no lock but to reload; meanwhile others get the last set.
        """
        if self._clock() >= self._next and self._lock.acquire(blocking=False):
            try:
                self._next = self._clock() + self._interval
                self._refresh()
            finally:
                self._lock.release()
        return self._rules

    def _tell_waiting(self) -> None:
        file, directories = self._where
        paths = [Path(p) for p in (file, *directories) if p is not None]
        wanted = [str(p) for q in paths for p in self._places.get(q, (q,))]
        if wanted:
            LOG.info(
                "There are no rules, everything is allowed; looked for at %s",
                ", ".join(dict.fromkeys(wanted)),
            )

    def _at(self, path: _Path) -> Path:
        """Return where a file or directory is by now.

        A place whose rules were never in force binds nobody: the files may
        have been refused there, and moved to where they belong.
        """
        there = self._there(path)
        held = (place for place in there if place in self._held)
        return next(held, there[0] if there else Path(path))

    def _there(self, path: _Path) -> list[Path]:
        wanted = self._places.get(Path(path), ())
        return [place for place in wanted if not absent(place)]

    def _look(self) -> _Signature:
        file, directories = self._where
        found = sources(
            None if file is None else self._at(file),
            [self._at(directory) for directory in directories],
        )
        return tuple((path, _stat(path)) for path in found)

    def _tell_split(self) -> None:
        """Tell, once, where the next start reads other files than these.

        Two looks must show it: what is moved may be in two places for a
        moment.
        """
        file, directories = self._where
        paths = [path for path in (file, *directories) if path is not None]
        split = tuple(
            (there[0], self._at(path))
            for path in paths
            if (there := self._there(path)) and there[0] != self._at(path)
        )
        told = split == self._told_split
        settled, self._split = split == self._split, split
        if told or not settled:
            return
        self._told_split = split
        for first, held in split:
            LOG.error(
                "The rules of %s stay in force here, and %s is there too: "
                "what starts later reads that one, the sweep of the "
                "quarantine too; keep one",
                held,
                first,
            )

    def _refresh(self) -> None:
        """Take what changed, once it has stayed the same for a while.

        A file that is just being written is not taken half written. Where
        no request has come for long, the first one finds a change that is
        old already, and is decided by it.
        """
        self._tell_split()
        seen = self._look()
        settled = seen == self._seen or self._rested(seen)
        self._seen = seen
        if not settled or seen == self._taken:
            return
        faults: tuple[Fault, ...] = ()
        try:
            rules = self._loader([path for path, _ in seen])
            if self._look() != seen:
                return
            self._take(rules, _lost(self._rules, rules, seen))
        except RulesError as error:
            faults = error.faults
        except Exception as error:
            # An error of ours must not reach the request that looked.
            LOG.exception("Reading changed rules failed")
            faults = (Fault("rules", 0, f"cannot be read: {error}"),)
        if faults:
            # Not while it is handled: oslo.log would add all of it again.
            self._refuse(faults)
        self._taken = seen

    def _rested(self, seen: _Signature) -> bool:
        """Return whether the last change is longer ago than an interval.

        By the inode's time, which nobody can set. A clock that was put back
        makes it lie in the future: then two looks decide.
        """
        if any(len(signature) == 1 for _, signature in seen):
            return False  # absent, for who knows how long
        newest = max((found[1] for _, found in seen), default=0) / 1e9
        return self._wall() - newest > self._interval + _COARSE

    def _take(self, rules: RuleSet, lost: Sequence[Fault]) -> None:
        if lost:
            raise RulesError(lost)
        if self.faults and not rules.sources:
            self._tell_waiting()
        elif self.faults:
            LOG.info(
                "The rules load again; changes were refused %d times since "
                "the start",
                self.refusals,
            )
        self.faults = ()
        if rules.revision != self._rules.revision:
            self.reloads += 1
            LOG.info(
                "The rule set %s replaces %s",
                rules.revision,
                self._rules.revision,
            )
        self._rules, self._held = rules, _held(rules)

    def _refuse(self, faults: tuple[Fault, ...]) -> None:
        if faults == self.faults:
            return
        self.faults = faults
        self.refusals += 1
        told = [str(fault) for fault in faults[:_TOLD]]
        if len(faults) > _TOLD:
            told.append(f"and {len(faults) - _TOLD} more")
        LOG.error(
            "Changed rules are refused (%d times since the start), %s stays "
            "in force: %s",
            self.refusals,
            self._rules.revision,
            "; ".join(told),
        )


def _stat(path: Path) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        return (getattr(error, "errno", None) or 0,)
    return (
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_size,
        found.st_ino,
        found.st_dev,
    )


def _held(rules: RuleSet) -> frozenset[Path]:
    """Return the files with a set's rules, and their directories."""
    files = {
        Path(place.rpartition(":")[0]) for place in rules.sources.values()
    }
    return frozenset(files | {file.parent for file in files})


def _lost(old: RuleSet, new: RuleSet, seen: _Signature) -> list[Fault]:
    """Return a fault for each file whose rules went with it.

    A file that vanishes is an accident more often than a wish. Who wants to
    be rid of its rules empties it first.
    """
    there = {str(path) for path, _ in seen}
    lost: dict[str, list[str]] = {}
    for name, place in old.sources.items():
        file = place.rpartition(":")[0]
        if file not in there and name not in new.sources:
            lost.setdefault(file, []).append(name)
    return [
        Fault(
            file,
            0,
            f"was deleted with the rule `{names[0]}` in it; to drop its"
            " rules empty the file first",
        )
        for file, names in lost.items()
    ]
