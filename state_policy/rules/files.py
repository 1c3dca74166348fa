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
from pathlib import Path, PosixPath
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
_ESCAPES = (
    "behind a backslash in double quotes stands an escape of YAML's: a"
    " backslash is written \\\\, a character beyond U+FFFF as it is"
)
_PAIR = 'a rule is written "name": "text", with a blank behind the colon'
_UNPRINTABLE: re.Pattern[str] = yaml.reader.Reader.NON_PRINTABLE

#: Where YAML begins a line and editors do not: behind a comment stands what
#: looks like a part of it. And what shows a line in another order.
_BREAK = re.compile("\r(?!\n)|[\x85\u2028\u2029]")
_TURN = re.compile("[\u202a-\u202e\u2066-\u2069]")

#: Levels of a list or mapping where a rule should be; the parser takes the
#: longer for each the more there are.
_MAX_DEPTH = 20


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


class NoDirectory(PosixPath):
    """Something else where a directory with policy files should be.

    Reading it tells so: a file is not taken for one of the directory's.
    """


def sources(
    policy_file: str | os.PathLike[str] | None,
    policy_dirs: Sequence[str | os.PathLike[str]] = (),
) -> list[Path]:
    """Return the policy files in the order oslo.policy reads them.

    As oslo.policy does, files whose name starts with a dot are left out, and
    what does not exist. What there may be and cannot be looked at is returned,
    a directory itself, so that loading it tells; so are a link that leads
    nowhere and what is no directory.

    :param policy_file: one file, or None
    :param policy_dirs: directories of more files
    """
    found: list[Path] = []
    if policy_file is not None and not absent(policy_file):
        found.append(Path(policy_file))
    for directory in map(Path, policy_dirs):
        try:
            names = sorted(os.listdir(directory))
        except FileNotFoundError:
            found += [] if absent(directory) else [directory]
            continue
        except NotADirectoryError:
            found.append(NoDirectory(directory))
            continue
        except (OSError, ValueError):
            found.append(directory)
            continue
        found += [directory / n for n in names if not n.startswith(".")]
    return found


def absent(path: str | os.PathLike[str]) -> bool:
    """Return whether nothing is there; False where that cannot be known.

    A directory on the way that must not be entered is no reason to go
    without rules.
    """
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


class UnreadableError(Exception):
    """A file as a whole is refused.

    :ivar line: where, from 1: what reads our errors wants a line in each
    """

    def __init__(self, reason: str, line: int = 1) -> None:
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
    if isinstance(path, NoDirectory):
        raise UnreadableError("is not a directory, and policy_dirs names it")
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
    for pattern, reason in (
        (_UNPRINTABLE, "holds the control character {:#04x}"),
        (_BREAK, "holds U+{:04X}: a line begins there to YAML, not to you"),
        (_TURN, "holds U+{:04X}: what follows is not shown as it stands"),
    ):
        odd = pattern.search(text)
        if odd:
            line = text[: odd.start()].count("\n") + 1
            raise UnreadableError(reason.format(ord(odd.group())), line)
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
    reader = _Reader(file)
    try:
        yield from reader.items(yaml.parse(text, Loader=_PARSER))
    except yaml.YAMLError as error:
        raise _no_yaml(text, error, reader.spanning) from error
    except (ValueError, OverflowError) as error:
        # Python's own parser, of an escape far beyond the last character.
        raise UnreadableError(f"is no YAML: {error}; {_ESCAPES}") from error


def _no_yaml(text: str, error: Any, spanning: Any) -> UnreadableError:
    """Return what is wrong, where its author has to look.

    :param spanning: the last quoted text that goes on in another line
    """
    mark = getattr(error, "problem_mark", None)
    began = getattr(error, "context_mark", None)
    line = mark.line + 1 if mark else 1
    problem = " ".join(str(getattr(error, "problem", None) or error).split())
    reason = f"is no YAML: {problem}"
    if spanning is not None and spanning.end_mark.line + 1 == line:
        return UnreadableError(
            f"{reason}; a quote that opens here is closed in line {line}"
            " only: a quote is missing",
            spanning.start_mark.line + 1,
        )
    if "escape" in problem or "hexdecimal" in problem:
        return UnreadableError(f"{reason}; {_ESCAPES}", line)
    if began is not None and "quoted" in str(error.context):
        return UnreadableError(
            f"{reason}; a quote that opens here is never closed",
            began.line + 1,
        )
    if began is not None and "simple key" in str(error.context):
        line = began.line + 1
        return UnreadableError(f"{reason}; {_PAIR}", line)
    return UnreadableError(reason + _yaml_advice(text, mark), line)


def _yaml_advice(text: str, mark: Any) -> str:
    """Return what to do about the line of a mark, or nothing."""
    character = _at(text, mark)
    if character == "\t":
        return "; indent with blanks, not with a tab"
    line = text.split("\n")[mark.line : mark.line + 1] if mark else []
    if any("".join(line).count(quote) % 2 for quote in "\"'"):
        return "; a quote is missing in this line, or one too many"
    if character in ("@", "%", "`"):
        return f'; quote the rule, as in "{character}"'
    return ""


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
        #: The last text in quotes that goes on in another line.
        self.spanning: Any = None

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
            if event.tag is not None:
                yield self._fault(event, "starts with a YAML tag; delete it")
            yield from self._pairs(events)
        elif not _is_nothing(event):
            raise UnreadableError(
                f"the file is not a mapping of rule names to rules; {_PAIR}",
                event.start_mark.line + 1,
            )

    def _pairs(self, events: Iterator[Any]) -> Iterator[Statement | Fault]:
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                return
            _skip(key, events)
            self._note(key)
            value = next(events)
            _skip(value, events)
            self._note(value)
            yield from self._pair(key, value)

    def _note(self, event: Any) -> None:
        quoted = isinstance(event, yaml.ScalarEvent) and event.style in (
            "'",
            '"',
        )
        if quoted and event.start_mark.line < event.end_mark.line:
            self.spanning = event

    def _pair(self, key: Any, value: Any) -> Iterator[Statement | Fault]:
        reason = _not_text(key)
        if reason:
            what = shown(key.value) if hasattr(key, "value") else "a key"
            # What is said of a rule behind the semicolon helps no name.
            reason = f"{reason.partition(';')[0]}; quote it"
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
        if reason:
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


def _is_nothing(event: Any) -> bool:
    # A tag alone, as in a file with one `!`, is a slip and not an empty file.
    return _is_plain(event) and event.value == "" and event.tag is None


def _skip(event: Any, events: Iterator[Any]) -> None:
    """Pass over the rest of a list or mapping.

    :raises UnreadableError: where it is nested deeper than anybody writes
    """
    depth = int(isinstance(event, yaml.CollectionStartEvent))
    while depth:
        inner = next(events)
        if depth > _MAX_DEPTH:
            raise UnreadableError(
                f"is nested more than {_MAX_DEPTH} levels deep",
                inner.start_mark.line + 1,
            )
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
        return "holds half a character: write it as it is, without \\u"
    return ""
