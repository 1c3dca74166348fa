# SPDX-License-Identifier: Apache-2.0
"""Whatever stands in a file: a rule set or faults, nothing else."""

from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from state_policy.engine.evaluate import decide
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import RulesError, load
from tests.property import strategies

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
        stated = yaml.safe_load(data) or {}
        assert rules.sources.keys() == stated.keys()
        return rules


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
