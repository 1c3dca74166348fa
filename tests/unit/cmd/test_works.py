# SPDX-License-Identifier: Apache-2.0
"""What an operator is told where a command cannot do what was asked."""

from types import SimpleNamespace

import pytest

from state_policy.cmd import quarantine
from state_policy.engine.ports.moving import MovingError
from state_policy.quarantine.operator import RefusedError


@pytest.mark.parametrize("error", [MovingError, RefusedError])
@pytest.mark.parametrize("words", [("show", "x"), ("sweep", "--server", "x")])
def test_a_refusal_is_no_surprise(run, monkeypatch, error, words):
    def refuse(*_):
        raise error("server x cannot be read")

    works = SimpleNamespace(
        driver=SimpleNamespace(hanging=lambda: 0), mover=None, policy=None
    )
    monkeypatch.setattr(quarantine, "open_works", lambda _: works)
    monkeypatch.setattr(quarantine.operator, "find", refuse)
    monkeypatch.setattr(quarantine, "open_rules", refuse)
    code, lines, err = run("quarantine", *words)
    assert (code, lines, err) == (1, [], "server x cannot be read\n")
