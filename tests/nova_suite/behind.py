# SPDX-License-Identifier: Apache-2.0
"""A paste file for Nova's own tests: the filter without rules, counted."""

from __future__ import annotations

from pathlib import Path

from tests.functional.harness import paste
from tests.nova_suite import counted


def write(directory: Path, filtered: bool) -> str:
    """Write Nova's paste file, with an inert filter or without.

    :returns: its path, for ``OS_WSGI__API_PASTE_CONFIG``
    """
    text = paste.installed().read_text()
    if filtered:
        rules = directory / "state_policy.yaml"
        rules.write_text("")
        text = paste.with_filter(text, {"policy_file": str(rules)})
        text = text.replace(
            f"use = {paste.FILTER}",
            f"paste.filter_factory = {counted.__name__}:filter_factory",
        )
    file = directory / "api-paste.ini"
    file.write_text(text)
    return str(file)
