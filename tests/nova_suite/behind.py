# SPDX-License-Identifier: Apache-2.0
"""A paste file for Nova's own tests, with an inert filter, counted.

It has no rules, or rules that refuse nothing but look at the server in every
request.
"""

from __future__ import annotations

from pathlib import Path

from tests.functional.harness import paste
from tests.nova_suite import counted

#: True of every server, and not known before its row is read.
RULES = """
"class:any": "server.vm_state:active or not server.vm_state:active"
"class:read": "rule:class:any"
"""

#: Nova's own refusals stay as they are: some tests know their text.
OPTIONS = {"explain": "false"}


def write(directory: Path, filtered: bool, looking: bool = True) -> str:
    """Write Nova's paste file, with an inert filter or without.

    :param looking: whether the filter has rules that look at the server
    :returns: its path, for ``OS_WSGI__API_PASTE_CONFIG``
    """
    text = paste.installed().read_text()
    if filtered:
        rules = directory / "state_policy.yaml"
        rules.write_text(RULES if looking else "")
        text = paste.with_filter(text, {"policy_file": str(rules), **OPTIONS})
        text = text.replace(
            f"use = {paste.FILTER}",
            f"paste.filter_factory = {counted.__name__}:filter_factory",
        )
    file = directory / "api-paste.ini"
    file.write_text(text)
    return str(file)
