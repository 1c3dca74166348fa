# SPDX-License-Identifier: Apache-2.0
"""The demonstration comes out as told, and could come out otherwise."""

from __future__ import annotations

import io

import pytest

from demo import cloud, narrator, story
from tests.functional import base


def test_every_step_comes_out_as_told() -> None:
    told = io.StringIO()
    say = narrator.Narrator(told)
    with cloud.running() as running:
        story.Story(running, say).run()
    assert say.checks >= 25
    assert told.getvalue().count("   ok  ") == say.checks
    assert "Cannot 'rebuild' instance" in told.getvalue()


def test_without_the_filter_it_comes_out_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cloud.Cloud, "FILTERED", False)
    say = narrator.Narrator(io.StringIO())
    with (
        cloud.running() as running,
        pytest.raises(narrator.DifferenceError, match="list is empty"),
    ):
        assert isinstance(running, base.NovaTestCase)
        story.Story(running, say).run()
