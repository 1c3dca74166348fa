# SPDX-License-Identifier: Apache-2.0
"""From policy files to a rule set, whole or not at all."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from types import MappingProxyType
from typing import Any

from state_policy.engine.ruleset import RuleSet
from state_policy.rules import defaults, names, resolving, text
from state_policy.rules.faults import (
    Fault,
    RulesError,
    few_hints,
    nearest,
    shown,
)
from state_policy.rules.files import Statement, statements
from state_policy.rules.judging import Judging
from state_policy.rules.kinds import Kind, installed
from state_policy.rules.kinds.caller import KINDS as CALLER_KINDS

#: So many rules of a circle are named.
_ALONG = 12

_Files = Sequence[str | os.PathLike[str]]


def load(
    files: _Files = (), kinds: Mapping[str, type[Kind]] | None = None
) -> RuleSet:
    """Return the rule set that files state on top of the defaults.

    :param files: paths, in the order of ``sources``; none: the defaults
    :param kinds: the kinds that rules can use, by name; those installed
        unless given
    :raises RulesError: with every fault of every file
    """
    with few_hints():
        return _load(files, kinds)


def _load(files: _Files, kinds: Mapping[str, type[Kind]] | None) -> RuleSet:
    loading = _Loading()
    try:
        judging = Judging(installed() if kinds is None else kinds)
    except RulesError as error:
        # Without the kinds every rule that uses one would be faulty too.
        loading.faults += error.faults
        judging = Judging(None)
    # One that is a path keeps its class, and what that says.
    paths = (f if isinstance(f, Path) else Path(f) for f in files)
    for path in dict.fromkeys(paths):
        loading.take(path)
    loading.judge(judging)
    loading.raise_faults(files)
    trees = loading.trees()
    loading.raise_faults(files)
    return RuleSet(
        expressions=MappingProxyType(
            resolving.resolve(loading.ordered, trees, judging)
        ),
        revision=_revision(loading.texts()),
        sources=MappingProxyType(
            {name: item.place for name, item in loading.stated.items()}
        ),
    ).prepare()


class _Loading:
    """One run of the loader: what files state, and what is wrong with it.

    :ivar stated: the first statement of each name: a set that loads has no
        second one that says something else
    :ivar readings: every statement, the others too, and what it was found
        to be
    """

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.stated: dict[str, Statement] = {}
        self.readings: list[tuple[Statement, text.Reading]] = []
        self.graph: dict[str, Collection[str]] = {}
        self.ordered: Sequence[str] = ()
        self._found: list[Statement] = []

    def raise_faults(self, files: _Files) -> None:
        """Refuse the set if there is anything to say against it."""
        if self.faults:
            order = {str(Path(p)): number for number, p in enumerate(files)}
            raise RulesError(
                sorted(
                    dict.fromkeys(self.faults),
                    key=lambda f: (order.get(f.file, -1), f.line),
                )
            )

    def take(self, path: Path) -> None:
        """Take what a file states; two files may not disagree."""
        found, faults = statements(path)
        self.faults += faults
        self._found += found
        for item in found:
            first = self.stated.setdefault(item.name, item)
            # Twice in one file is a fault that the file's reader has told.
            if first.file != item.file and _differ(first, item):
                self._fault(
                    item,
                    f"{shown(item.name)} is stated otherwise in"
                    f" {first.place}; keep one",
                )

    def judge(self, judging: Judging) -> None:
        """Judge each rule, and how they refer to each other."""
        self.graph = {**_default_graph()}
        for item in self._found:
            reading = text.read(item.text, judging)
            self.readings.append((item, reading))
            for reason in reading.reasons:
                self._fault(item, reason)
            first = self.stated[item.name]
            if item is first:
                self.graph[item.name] = tuple(reading.references)
            elif _differ(first, item):
                others = self.graph[item.name]
                self.graph[item.name] = (*others, *reading.references)
        self._judge_references()
        self._judge_names()
        self._judge_places()

    def texts(self) -> dict[str, str]:
        """Return the text of every rule, one blank between its words."""
        found = dict(defaults.texts())
        for name, item in self.stated.items():
            found[name] = " ".join(item.text.split())
        return found

    def trees(self) -> dict[str, Any]:
        """Return oslo.policy's tree of every rule."""
        found = dict(_default_trees())
        for item, reading in self.readings:
            try:
                found[item.name] = text.parse(
                    item.name, item.text, reading.conditions
                )
            except ValueError as error:
                self._fault(item, str(error))
        return found

    def _judge_references(self) -> None:
        for item, reading in self.readings:
            for other in dict.fromkeys(reading.references):
                if other not in self.graph:
                    self._fault(
                        item,
                        f"{shown(f'rule:{other}')} refers to no rule"
                        f"{nearest(other, self.graph)}",
                    )
        graph = {
            name: [other for other in others if other in self.graph]
            for name, others in self.graph.items()
        }
        self.ordered = resolving.order(graph) or ()
        if self.ordered:
            self._judge_sizes(graph)
            return
        for cycle in resolving.cycles(graph):
            path = " -> ".join(map(shown, cycle[:_ALONG]))
            if len(cycle) > _ALONG:
                path += f" and {len(cycle) - _ALONG} more"
            self._fault(
                self._one_along(cycle), f"the rules go in a circle: {path}"
            )

    def _one_along(self, cycle: Sequence[str]) -> Statement:
        """Return a statement that leads from one name to the next."""
        steps = set(itertools.pairwise(cycle))
        # Defaults alone have no cycle: one rule of it stands in a file.
        return next(
            item
            for item, reading in self._along(cycle)
            if any((item.name, o) in steps for o in reading.references)
        )

    def _along(
        self, cycle: Sequence[str]
    ) -> Iterator[tuple[Statement, text.Reading]]:
        """Yield what states the names of a cycle, in its order."""
        by_name: dict[str, list[tuple[Statement, text.Reading]]] = {}
        for item, reading in self.readings:
            by_name.setdefault(item.name, []).append((item, reading))
        for name in cycle:
            yield from by_name.get(name, ())

    def _judge_sizes(self, graph: resolving.Graph) -> None:
        own: dict[str, tuple[int, int]] = {}
        for item, reading in self.readings:
            levels, size = own.get(item.name, (0, 0))
            own[item.name] = (
                max(levels, reading.levels),
                max(size, len(reading.conditions)),
            )
        found = resolving.oversized(self.ordered, graph, own)
        for name, reason in found.items():
            item = self.stated.get(name) or next(iter(self.stated.values()))
            self._fault(item, f"{shown(name)} {reason}")

    def _judge_names(self) -> None:
        # A rule that only a rule without effect leads to has none either.
        referred = resolving.reached(self.graph, defaults.texts())
        for item, _ in self.readings:
            reason = names.reason_against(item.name, referred)
            group = defaults.groups().get(item.name, item.text)
            if group.split() != item.text.split():
                reason = (
                    f"{shown(item.name)} is predefined as `{group}`; choose"
                    " another name"
                )
            if reason:
                self._fault(item, reason)

    def _judge_places(self) -> None:
        """Refuse conditions that nothing is known of where they stand."""
        sweep = resolving.reached(self.graph, defaults.QUARANTINE_RULES)
        requests = resolving.reached(
            self.graph, (n for n in self.graph if n.startswith("server:"))
        )
        for item, reading in self.readings:
            for condition in reading.conditions:
                kind = condition.partition(":")[0]
                if item.name in sweep and kind in CALLER_KINDS:
                    self._fault(
                        item,
                        f"{shown(condition)}: rules of the quarantine have no"
                        " caller",
                    )
                if item.name in requests and kind.startswith("quarantine."):
                    self._fault(
                        item,
                        f"{shown(condition)} is known to `quarantine:purge`"
                        " and `quarantine:release` alone",
                    )

    def _fault(self, item: Statement, reason: str) -> None:
        self.faults.append(Fault(item.file, item.line, reason))


def _differ(first: Statement, second: Statement) -> bool:
    """Return whether two statements of a name say different things."""
    return first.text.split() != second.text.split()


def _revision(texts: Mapping[str, str]) -> str:
    """Return a digest of what the rules say, equal on every API host."""
    digest = hashlib.sha256()
    for name in sorted(texts):
        digest.update(f"{name}\0{texts[name]}\0".encode())
    return digest.hexdigest()[:12]


@functools.cache
def _default_trees() -> Mapping[str, Any]:
    return {rule.name: rule.check for rule in defaults.list_rules()}


@functools.cache
def _default_graph() -> Mapping[str, Collection[str]]:
    return {name: _references(tree) for name, tree in _default_trees().items()}


def _references(tree: Any) -> Collection[str]:
    leaves: Iterable[str] = map(str, text.leaves(tree))
    return tuple(
        leaf.partition(":")[2] for leaf in leaves if leaf.startswith("rule:")
    )
