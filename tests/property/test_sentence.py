# SPDX-License-Identifier: Apache-2.0
"""Nova's own words stay, whatever they are and whatever we know."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from state_policy.engine import sentence
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ports.reading import Circumstances

#: Lengths around the bound, ends of every sort.
MESSAGES = st.one_of(
    st.text(max_size=40),
    st.builds(
        lambda length, end: "x" * length + end,
        st.integers(sentence.LIMIT - 130, sentence.LIMIT + 60),
        st.sampled_from(["", ".", "!", "?", " ", "\n", "é", "\ud800"]),
    ),
    st.text(min_size=290, max_size=400),
)
CIRCUMSTANCES = st.builds(
    Circumstances,
    st.none() | st.floats(0, 10**9),
    st.none() | st.sampled_from(["createImage", "reboot"]),
    st.none() | st.just("req-5f2a0d0e-93c5-4b8c-9d0f-7a6b5c4d3e2f"),
)
POSSIBLE = st.lists(st.sampled_from(sorted(OPERATIONS)), max_size=8)


@settings(max_examples=500, deadline=None)
@given(MESSAGES, CIRCUMSTANCES, POSSIBLE, st.none() | st.integers(1, 10**6))
def test_the_message_stays(message, circumstances, possible, seconds):
    found = sentence.extend(message, circumstances, possible, seconds)
    assert found.startswith(message)
    assert len(found) <= max(sentence.LIMIT, len(message))
    if found != message:
        # What is added is a whole sentence of ours.
        assert found.endswith(".")
        assert len(found) > len(message) + 2


@given(MESSAGES)
def test_who_knows_nothing_adds_nothing(message):
    assert sentence.extend(message, Circumstances(), (), None) == message
