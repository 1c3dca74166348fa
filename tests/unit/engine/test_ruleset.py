# SPDX-License-Identifier: Apache-2.0
"""What a rule needs to be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from state_policy.engine.facts import CALLER
from state_policy.rules import load


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ("role:member", set()),
        ("project_id:%(project_id)s", set()),
        ("user_id:%(user_id)s", {CALLER}),
        ("not service_user_id:%(user_id)s", {CALLER}),
        ("role:a or server.locked:true", {"server.locked"}),
        ("user_id:u or user_id:%(user_id)s", {CALLER}),
    ],
)
def test_the_caller_is_needed_where_he_is_compared_with_the_user(
    tmp_path: Path, text: str, needs: set[str]
) -> None:
    """Every location names a project; not all of them name a user."""
    file = tmp_path / "policy.yaml"
    file.write_text(f'"server:stop": "{text}"')
    assert load([file]).operations["stop"].needs == needs
