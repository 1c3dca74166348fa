# SPDX-License-Identifier: Apache-2.0
"""From policy files to a rule set, whole or not at all."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from state_policy.engine.ruleset import RuleSet
from state_policy.rules import defaults, names, resolving, text
from state_policy.rules.faults import Fault, RulesError, nearest, shown
from state_policy.rules.files import Statement, statements
from state_policy.rules.judging import Judging
from state_policy.rules.kinds import Kind, installed
from state_policy.rules.kinds.caller import KINDS as CALLER_KINDS

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
    loading = _Loading()
    try:
        judging = Judging(installed() if kinds is None else kinds)
    except RulesError as error:
        # Without the kinds every rule that uses one would be faulty too.
        loading.faults += error.faults
        judging = Judging(None)
    for path in dict.fromkeys(map(Path, files)):
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
    """One run of the loader: what files state, and what is wrong with it."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.stated: dict[str, Statement] = {}
        self.readings: dict[str, text.Reading] = {}
        self.graph: dict[str, Collection[str]] = {}
        self.ordered: Sequence[str] = ()

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
        for item in found:
            first = self.stated.setdefault(item.name, item)
            if first.text.split() != item.text.split():
                self._fault(
                    item,
                    f"{shown(item.name)} is stated otherwise in"
                    f" {first.place}; keep one",
                )

    def judge(self, judging: Judging) -> None:
        """Judge each rule, and how they refer to each other."""
        for name, item in self.stated.items():
            self.readings[name] = reading = text.read(item.text, judging)
            for reason in reading.reasons:
                self._fault(item, reason)
        self.graph = {**_default_graph()}
        for name, reading in self.readings.items():
            self.graph[name] = tuple(reading.references)
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
        for name, reading in self.readings.items():
            item = self.stated[name]
            try:
                found[name] = text.parse(name, item.text, reading.conditions)
            except ValueError as error:
                self._fault(item, str(error))
        return found

    def _judge_references(self) -> None:
        for name, item in self.stated.items():
            for other in dict.fromkeys(self.graph[name]):
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
            path = " -> ".join(map(shown, cycle))
            # Defaults alone have no cycle: one rule of it stands in a file.
            name = next(name for name in cycle if name in self.stated)
            self._fault(self.stated[name], f"the rules go in a circle: {path}")

    def _judge_sizes(self, graph: resolving.Graph) -> None:
        own = {
            name: (reading.levels, len(reading.conditions))
            for name, reading in self.readings.items()
        }
        found = resolving.oversized(self.ordered, graph, own)
        for name, reason in found.items():
            item = self.stated.get(name) or next(iter(self.stated.values()))
            self._fault(item, f"{shown(name)} {reason}")

    def _judge_names(self) -> None:
        referred = {o for name in self.stated for o in self.graph[name]}
        for name, item in self.stated.items():
            reason = names.reason_against(name, referred)
            group = defaults.groups().get(name, item.text)
            if group.split() != item.text.split():
                reason = (
                    f"{shown(name)} is predefined as `{group}`; choose"
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
        for name, item in self.stated.items():
            for condition in self.readings[name].conditions:
                kind = condition.partition(":")[0]
                if name in sweep and kind in CALLER_KINDS:
                    self._fault(
                        item,
                        f"{shown(condition)}: rules of the quarantine have no"
                        " caller",
                    )
                if name in requests and kind.startswith("quarantine."):
                    self._fault(
                        item,
                        f"{shown(condition)} is known to `quarantine:purge`"
                        " and `quarantine:release` alone",
                    )

    def _fault(self, item: Statement, reason: str) -> None:
        self.faults.append(Fault(item.file, item.line, reason))


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
