# SPDX-License-Identifier: Apache-2.0
"""Reading case files; what is wrong with one is said with file and line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from state_policy.cmd.casefile import values
from state_policy.cmd.casefile.model import Case, Invalid, Suite
from state_policy.engine.decision import Verdict
from state_policy.engine.facts import CALLER
from state_policy.engine.operations import OPERATIONS
from state_policy.rules.faults import nearest, shown

_TEST = ("name", "rules", "operation", "caller", "given", "expect")
_INVALID = ("name", "rules", "expect")
_EXPECT: Mapping[str, type | tuple[type, ...]] = {
    "verdict": str,
    "code": (int, type(None)),
    "retry_after": (int, type(None)),
    "rule": str,
    "message_contains": (str, list),
    "evidence": bool,
}
_MERGE = "tag:yaml.org,2002:merge"
_TOP = ("tests", "invalid")
_SUFFIXES = (".yaml", ".yml")
_Item = TypeVar("_Item", Case, Invalid)


class _FaultError(Exception):
    """What is wrong at a line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


class _Mapping(dict[str, Any]):
    """A mapping that knows the lines of its keys and its own."""

    line: int = 0
    lines: dict[str, int]


class _Loader(yaml.SafeLoader):
    """Keeps lines; a key that stands twice is an error."""


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> _Mapping:
    found = _Mapping()
    found.line = node.start_mark.line + 1
    found.lines = {}
    own = [pair for pair in node.value if pair[0].tag != _MERGE]
    for key_node, value_node in own:
        key = str(loader.construct_object(key_node, deep=True))
        line = key_node.start_mark.line + 1
        if key in found:
            raise _FaultError(line, f"{shown(key)} is stated twice")
        found[key] = loader.construct_object(value_node, deep=True)
        found.lines[key] = line
    stated = set(found)
    for key_node, value_node in _merged(loader, node):
        key = str(loader.construct_object(key_node, deep=True))
        if key not in stated:
            found[key] = loader.construct_object(value_node, deep=True)
            found.lines[key] = found.line
    return found


def _merged(loader: yaml.SafeLoader, node: yaml.MappingNode) -> list[Any]:
    """Return what `<<` brings in, the later of two alike being the one."""
    pairs = [pair for pair in node.value if pair[0].tag == _MERGE]
    other = yaml.MappingNode(node.tag, pairs, node.start_mark, node.end_mark)
    loader.flatten_mapping(other)
    return list(other.value)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def read(paths: Iterable[Path]) -> Suite:
    """Return what the case files under some paths state.

    :param paths: case files, or directories that are searched; in these,
        YAML files without ``tests`` and ``invalid`` are something else
    """
    suite = Suite()
    unread: dict[Path, str] = {}
    for path in paths:
        for file in _files(path):
            _read_file(file, suite, unread, asked=not os.path.isdir(path))
    # A broken file is fine where a case says so.
    stated = [(case.file, case.rules) for case in suite.cases]
    stated += [(case.file, case.rules) for case in suite.invalid]
    rules = {
        (file.parent / name).resolve()
        for file, names in stated
        for name in names
    }
    suite.faults += [
        fault for file, fault in unread.items() if file.resolve() not in rules
    ]
    return suite


def _files(path: Path) -> Iterator[Path]:
    if not os.path.isdir(path):
        yield path
        return
    for file in sorted(path.rglob("*")):
        if file.suffix in _SUFFIXES and os.path.isfile(file):
            yield file


def _read_file(
    file: Path, suite: Suite, unread: dict[Path, str], asked: bool
) -> None:
    try:
        data = _parse(file)
    except _FaultError as fault:
        unread[file] = _said(file, fault)
        return
    if not isinstance(data, _Mapping) or not set(_TOP) & set(data):
        if asked:
            reason = "states neither `tests` nor `invalid`"
            suite.faults.append(f"{file}: {reason}")
        return
    for key, line in data.lines.items():
        if key not in _TOP:
            suite.faults.append(
                f"{file}:{line}: unknown key {shown(key)}{nearest(key, _TOP)}"
            )
    suite.cases += _made(file, data, "tests", _case, suite)
    suite.invalid += _made(file, data, "invalid", _invalid, suite)


def _made(
    file: Path,
    data: _Mapping,
    key: str,
    make: Callable[[Path, _Mapping], _Item],
    suite: Suite,
) -> list[_Item]:
    found = []
    for item in _items(file, data, key, suite):
        try:
            found.append(make(file, item))
        except _FaultError as fault:
            suite.faults.append(_said(file, fault))
    return found


def _said(file: Path, fault: _FaultError) -> str:
    place = f"{file}:{fault.line}" if fault.line else str(file)
    return f"{place}: {fault}"


def _parse(file: Path) -> Any:
    try:
        # _Loader is a SafeLoader.
        return yaml.load(file.read_text("utf-8"), Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise _FaultError(
            mark.line + 1 if mark else 0, f"is no YAML: {error.problem}"
        ) from error
    except yaml.YAMLError as error:
        raise _FaultError(0, "is no YAML") from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _FaultError(0, f"cannot be read: {reason}") from error
    except UnicodeDecodeError as error:
        raise _FaultError(0, "is not UTF-8 text") from error


def _items(
    file: Path, data: _Mapping, key: str, suite: Suite
) -> Iterator[_Mapping]:
    items = data.get(key, [])
    if not isinstance(items, list):
        suite.faults.append(f"{file}:{data.lines[key]}: `{key}` is no list")
        return
    for item in items:
        if isinstance(item, _Mapping):
            yield item
        else:
            suite.faults.append(
                f"{file}:{data.lines[key]}: {shown(str(item))} is no mapping"
            )


def _case(file: Path, item: _Mapping) -> Case:
    _known(item, _TEST, item)
    operation = _of_type(item, "operation", str)
    if operation not in OPERATIONS:
        raise _FaultError(
            item.lines["operation"],
            f"unknown operation {shown(operation)}"
            f"{nearest(operation, OPERATIONS)}",
        )
    return Case(
        name=_of_type(item, "name", str),
        file=file,
        line=item.line,
        rules=_rules(item),
        operation=operation,
        facts=_facts(item),
        expect=_expect(item),
    )


def _invalid(file: Path, item: _Mapping) -> Invalid:
    _known(item, _INVALID, item)
    rules = _rules(item)
    expect = _of_type(item, "expect", str)
    name = str(item.get("name") or f"{', '.join(rules)} is refused: {expect}")
    return Invalid(name, file, item.line, rules, expect)


def _facts(item: _Mapping) -> dict[str, Any]:
    found: dict[str, Any] = {}
    caller = _sub(item, "caller")
    try:
        found[CALLER] = values.caller(caller)
    except ValueError as error:
        line = item.lines.get("caller", item.line)
        raise _FaultError(line, str(error)) from error
    given = _sub(item, "given")
    for key, value in given.items():
        try:
            full, fact = values.fact(key, value)
        except ValueError as error:
            raise _FaultError(given.lines[key], str(error)) from error
        if full in found:
            reason = f"{shown(full)} is given twice"
            raise _FaultError(given.lines[key], reason)
        found[full] = fact
    return found


def _expect(item: _Mapping) -> dict[str, Any]:
    if "expect" not in item:
        raise _FaultError(item.line, "`expect` is missing")
    expect = _sub(item, "expect")
    _known(expect, tuple(_EXPECT), item)
    for key in ("code", "retry_after"):
        if expect.get(key) == values.NONE:
            expect[key] = None
    if not expect:
        raise _FaultError(item.lines["expect"], "`expect` expects nothing")
    for key in expect:
        _of_type(expect, key, _EXPECT[key])
    verdict = expect.get("verdict")
    if verdict is not None and verdict not in list(Verdict):
        raise _FaultError(
            expect.lines["verdict"],
            f"unknown verdict {shown(verdict)}: one of {', '.join(Verdict)}",
        )
    return dict(expect)


def _rules(item: _Mapping) -> tuple[str, ...]:
    rules = item.get("rules")
    rules = [rules] if isinstance(rules, str) else rules
    if (
        not isinstance(rules, list)
        or not rules
        or not all(isinstance(name, str) for name in rules)
    ):
        raise _FaultError(
            item.lines.get("rules", item.line),
            "`rules` is a list of files, as in `[rules.yaml]`",
        )
    return tuple(rules)


def _known(found: _Mapping, known: tuple[str, ...], item: _Mapping) -> None:
    for key, line in found.lines.items():
        if key not in known:
            hint = nearest(key, known)
            raise _FaultError(line, f"unknown key {shown(key)}{hint}")


def _sub(item: _Mapping, key: str) -> _Mapping:
    found = item.get(key)
    if found is None:
        found = _Mapping()
        found.lines = {}
    if not isinstance(found, _Mapping):
        raise _FaultError(item.lines[key], f"`{key}` is no mapping")
    return found


def _of_type(item: _Mapping, key: str, wanted: type | tuple[type, ...]) -> Any:
    if key not in item:
        raise _FaultError(item.line, f"`{key}` is missing")
    value = item[key]
    if not isinstance(value, wanted) or (
        isinstance(value, bool) and wanted is not bool
    ):
        raise _FaultError(
            item.lines[key],
            f"`{key}` cannot be {shown(str(value))}",
        )
    return value
