# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a file: a rule set or faults, nothing else."""

import re
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from state_policy.engine import expression as tree
from state_policy.engine.evaluate import decide
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import RulesError, load
from tests.property import strategies

#: The safe loader that the project prefers, too.
PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

SAMPLE = """\
# The design's examples.
"server:delete:quarantine": "server.task_state:spawning,deleting and \
rule:building and server.state_age:>=60m"
"server:delete": "not (rule:snapshotting and server.state_age:<30m)"
server:create_image: not rule:busy
'class:power': >-
  not server.host_up:false
  and not server.migration:evacuation
"server:delete:brake": "project.deletes:10m:>50 or role:reader"
"mine": "@"
"""


def outcome(data: bytes) -> RuleSet | None:
    """Load the bytes; hold the loader to its promise."""
    with TemporaryDirectory() as directory:
        path = Path(directory, "rules.yaml")
        path.write_bytes(data)
        try:
            rules = load([path])
        except RulesError as error:
            assert error.faults
            for fault in error.faults:
                assert fault.file == str(path)
                lines = data.decode(errors="replace").splitlines()
                assert 0 <= fault.line <= len(lines) + 2
                assert fault.reason
                assert len(str(fault).splitlines()) == 1
                assert str(fault).isprintable()
            return None
        # A set that loads decides, and is what YAML says the file states.
        decide(rules, "delete", {})
        # The two parsers differ: `>#` begins a text to libyaml alone.
        stated = yaml.load(data, Loader=PARSER) or {}
        assert rules.sources.keys() == stated.keys()
        for name, text in stated.items():
            assert meaning(rules.expressions[name]) == Reader(text).meaning()
        return rules


#: In so many worlds each condition is true or not, as chance has it.
WORLDS = 24


def everywhere(condition: str) -> tuple[bool, ...]:
    bits = zlib.crc32(condition.encode())
    return tuple(bool(bits >> world & 1) for world in range(WORLDS))


class Reader:
    """Reads a rule as a person does: a parenthesis is one wherever it is.

    Nothing of the project's reading is used: ``or`` binds least, then
    ``and``, then ``not``.
    """

    WORD = re.compile(r"[()]|(?:%\([^()\s]*\)s|[^()\s])+")

    def __init__(self, text: str) -> None:
        self.words = self.WORD.findall(text)[::-1]

    def meaning(self) -> tuple[bool, ...]:
        found = self.disjunction()
        assert not self.words
        return found

    def next_is(self, word: str) -> bool:
        return bool(self.words) and self.words[-1].lower() == word

    def disjunction(self) -> tuple[bool, ...]:
        found = [self.conjunction()]
        while self.next_is("or"):
            self.words.pop()
            found.append(self.conjunction())
        return tuple(map(any, zip(*found, strict=True)))

    def conjunction(self) -> tuple[bool, ...]:
        found = [self.negation()]
        while self.next_is("and"):
            self.words.pop()
            found.append(self.negation())
        return tuple(map(all, zip(*found, strict=True)))

    def negation(self) -> tuple[bool, ...]:
        word = self.words.pop()
        if word.lower() == "not":
            return tuple(not value for value in self.negation())
        if word == "(":
            found = self.disjunction()
            assert self.words.pop() == ")"
            return found
        assert word not in ("and", "or", ")")
        return {"@": (True,) * WORLDS, "!": (False,) * WORLDS}.get(
            word, everywhere(word)
        )


def meaning(rule: tree.Expression) -> tuple[bool, ...]:
    """Return what the loader made of a rule, in each world."""
    match rule:
        case tree.Constant(value):
            return (value,) * WORLDS
        case tree.Condition(literal):
            return everywhere(f"{literal.kind}:{literal.match}")
        case tree.Reference(name):
            return everywhere(f"rule:{name}")
        case tree.Not(part):
            return tuple(not value for value in meaning(part))
    joined = all if isinstance(rule, tree.All) else any
    return tuple(map(joined, zip(*map(meaning, rule.parts), strict=True)))


def test_the_readers_agree_on_what_binds_most():
    text = "not rule:busy and (@ or !) or server.tag:a and rule:building"
    busy, tag, building = map(
        everywhere, ("rule:busy", "server.tag:a", "rule:building")
    )
    assert Reader(text).meaning() == tuple(
        (not a) or (b and c)
        for a, b, c in zip(busy, tag, building, strict=True)
    )


def test_the_sample_loads():
    assert outcome(SAMPLE.encode()) is not None


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_bytes(data):
    outcome(data)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200))
def test_text(text):
    outcome(text.encode(errors="surrogatepass"))


@settings(max_examples=200, deadline=None)
@given(strategies.CONTENTS, st.sampled_from([None, '"', "'", ">", "|"]))
def test_contents(contents, style):
    text = yaml.safe_dump(contents, default_style=style, allow_unicode=True)
    outcome(text.encode(errors="surrogatepass"))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SAMPLE)),
            st.integers(0, 4),
            strategies.SNIPPETS,
        ),
        min_size=1,
        max_size=3,
    )
)
def test_mutations(mutations):
    text = SAMPLE
    for position, length, snippet in mutations:
        text = text[:position] + snippet + text[position + length :]
    outcome(text.encode(errors="surrogatepass"))


@settings(max_examples=300, deadline=None)
@given(
    strategies.trees(("server.tag", "role", "project_id"), ("busy",)),
    st.lists(st.booleans(), min_size=1),
)
def test_blanks_left_out_beside_parentheses(rule, blanks):
    """Either refused, or it means what it says."""
    pair = ("and", [("always",), rule])
    text = strategies.written(("or", [pair, pair, ("not", pair)]))
    parts = re.split(r"(?<=\)) |(?<!not) (?=\()", text)
    for number, part in enumerate(parts[:-1]):
        parts[number] = part + " " * blanks[number % len(blanks)]
    outcome(f'"server:stop": "{"".join(parts)}"'.encode())


@pytest.mark.parametrize(
    "text",
    [
        "(role:admin)or(role:operator)",
        "not ((server.tag:keep)or(server.tag:prod))",
        "(rule:busy)and(rule:building)",
        "(server.flavor:m1(small) or rule:busy",
    ],
)
def test_no_parenthesis_is_part_of_a_value(text):
    assert outcome(f'"server:stop": "{text}"'.encode()) is None
