# SPDX-License-Identifier: Apache-2.0
"""Policy files: which there are, and what each states, line by line.

The files are oslo.policy's YAML. The parser's events are read instead of
what YAML makes of them: events keep lines and quotes, show both of two equal
keys, and need no recursion.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from state_policy.rules.faults import Fault, shown

#: Bytes; what is larger is no policy file.
MAX_BYTES = 2 * 1024 * 1024

_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Any = yaml.resolver.Resolver()
_TEXT = "tag:yaml.org,2002:str"
_ADVICE = {
    "null": 'is empty; write "@" for always and "!" for never',
    "bool": "is a boolean to YAML; quote it",
    "int": "is a number to YAML; a rule is a text",
    "float": "is a number to YAML; a rule is a text",
    "timestamp": "is a date to YAML; a rule is a text",
}
_UNPRINTABLE: re.Pattern[str] = yaml.reader.Reader.NON_PRINTABLE


@dataclass(frozen=True, slots=True)
class Statement:
    """A rule as a file states it.

    :ivar name: the rule's name
    :ivar text: its text
    :ivar file: path of the file
    :ivar line: line of the name, from 1
    """

    name: str
    text: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """Return ``file:line``."""
        return f"{self.file}:{self.line}"


def sources(
    policy_file: str | os.PathLike[str] | None,
    policy_dirs: Sequence[str | os.PathLike[str]] = (),
) -> list[Path]:
    """Return the policy files in the order oslo.policy reads them.

    As oslo.policy does, files whose name starts with a dot are left out, and
    what does not exist. A directory that cannot be listed is returned itself,
    so that loading it tells.

    :param policy_file: one file, or None
    :param policy_dirs: directories of more files
    """
    found = []
    if policy_file is not None and os.path.lexists(policy_file):
        found.append(Path(policy_file))
    for directory in map(Path, policy_dirs):
        try:
            names = sorted(os.listdir(directory))
        except FileNotFoundError:
            continue
        except OSError:
            found.append(directory)
            continue
        found += [directory / n for n in names if not n.startswith(".")]
    return found


class UnreadableError(Exception):
    """A file as a whole is refused.

    :ivar line: where, from 1, or 0
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def statements(path: Path) -> tuple[list[Statement], list[Fault]]:
    """Return what a file states and what is wrong with it."""
    found: list[Statement] = []
    faults: list[Fault] = []
    try:
        for item in _read(_content(path), str(path)):
            if isinstance(item, Statement):
                found.append(item)
            else:
                faults.append(item)
    except UnreadableError as error:
        faults.append(Fault(str(path), error.line, str(error)))
    return found, faults


def _content(path: Path) -> str:
    try:
        data = _bytes(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(f"cannot be read: {reason.lower()}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UnreadableError("is not UTF-8 text", line) from error
    odd = _UNPRINTABLE.search(text)
    if odd:
        line = text[: odd.start()].count("\n") + 1
        raise UnreadableError(
            f"holds the control character {ord(odd.group()):#04x}", line
        )
    return text


def _bytes(path: Path) -> bytes:
    # Without O_NONBLOCK the open of a pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableError("is a directory, not a file")
        if not stat.S_ISREG(mode):
            raise UnreadableError("is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"is larger than {MAX_BYTES} bytes")
    return data


def _read(text: str, file: str) -> Iterator[Statement | Fault]:
    try:
        yield from _Reader(file).items(yaml.parse(text, Loader=_PARSER))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error)
        raise UnreadableError(
            _yaml_reason(str(reason), _at(text, mark)),
            mark.line + 1 if mark else 0,
        ) from error


def _yaml_reason(problem: str, character: str) -> str:
    reason = "is no YAML: " + " ".join(problem.split())
    if character == "\t":
        return reason + "; indent with blanks, not with a tab"
    if character in ("@", "%", "`"):
        return f'{reason}; quote the rule, as in "{character}"'
    return reason


def _at(text: str, mark: Any) -> str:
    """Return the character at a mark, or nothing."""
    lines = text.split("\n")
    if mark is None or mark.line >= len(lines):
        return ""
    return str(lines[mark.line][mark.column : mark.column + 1])


class _Reader:
    """Follows the events of one file: a mapping of texts to texts."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._lines: dict[str, int] = {}

    def items(self, events: Iterator[Any]) -> Iterator[Statement | Fault]:
        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    yield self._fault(event, "starts a second YAML document")
                    return
            elif isinstance(event, yaml.NodeEvent):
                yield from self._root(event, events)

    def _root(
        self, event: Any, events: Iterator[Any]
    ) -> Iterator[Statement | Fault]:
        if isinstance(event, yaml.MappingStartEvent):
            yield from self._pairs(events)
        elif not (_is_plain(event) and event.value == ""):
            _skip(event, events)
            yield self._fault(
                event, "the file is not a mapping of rule names to rules"
            )

    def _pairs(self, events: Iterator[Any]) -> Iterator[Statement | Fault]:
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                return
            _skip(key, events)
            value = next(events)
            _skip(value, events)
            yield from self._pair(key, value)

    def _pair(self, key: Any, value: Any) -> Iterator[Statement | Fault]:
        reason = _not_text(key)
        if reason:
            what = shown(key.value) if hasattr(key, "value") else "a key"
            yield self._fault(key, f"the rule name {what} {reason}")
            return
        name, line = key.value, key.start_mark.line + 1
        reason = _not_text(value)
        if name in self._lines:
            yield self._fault(
                key,
                f"{shown(name)} is stated twice, first in line"
                f" {self._lines[name]}; keep one",
            )
        elif reason:
            yield self._fault(
                value, f"the rule of {shown(name)} {reason}", line
            )
        else:
            yield Statement(name, value.value, self._file, line)
        self._lines.setdefault(name, line)

    def _fault(self, event: Any, reason: str, line: int = 0) -> Fault:
        return Fault(self._file, line or event.start_mark.line + 1, reason)


def _is_plain(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and not event.style


def _skip(event: Any, events: Iterator[Any]) -> None:
    """Pass over the rest of a list or mapping, however deep."""
    depth = int(isinstance(event, yaml.CollectionStartEvent))
    while depth:
        inner = next(events)
        depth += isinstance(inner, yaml.CollectionStartEvent)
        depth -= isinstance(inner, yaml.CollectionEndEvent)


def _not_text(event: Any) -> str:
    """Return why YAML does not take it for a text, or nothing."""
    if isinstance(event, yaml.SequenceStartEvent):
        return "is a list; a rule is one text with `and` and `or`"
    if isinstance(event, yaml.MappingStartEvent):
        return "is a mapping; quote the text"
    if isinstance(event, yaml.AliasEvent):
        return "is a YAML alias; name the rule and write `rule:<name>`"
    if event.tag is not None:
        if event.tag.startswith("!"):
            return 'starts with an unquoted `!`, a tag to YAML; write "!"'
        return "has a YAML tag; write a plain text"
    if not _is_plain(event):
        return _unencodable(event.value)
    tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)
    if tag == _TEXT:
        return _unencodable(event.value)
    return _ADVICE.get(tag.rpartition(":")[2], "is no text to YAML; quote it")


def _unencodable(text: str) -> str:
    # An escape in double quotes can name half of a surrogate pair.
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds a character that UTF-8 does not have"
    return ""
