# SPDX-License-Identifier: Apache-2.0
"""Paste files: Nova's installed one, with or without the filter in it."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Mapping
from pathlib import Path

#: The entry point a deployer writes into api-paste.ini.
FILTER = "egg:state-policy#state_policy"

_PIPELINE = re.compile(
    r"^(keystone\s*=.*\S)[ \t]+(osapi_compute_app_v21)[ \t]*$", re.MULTILINE
)
#: keystonecontext stands in two pipelines of Nova's file (29 to 34): that of
#: /v2.1 and that of /v2.
PIPELINES = 2


@functools.cache
def installed() -> Path:
    """Return the api-paste.ini that came with the installed Nova."""
    for file in importlib.metadata.files("nova") or ():
        if file.name == "api-paste.ini":
            return Path(str(file.locate())).resolve()
    raise LookupError("the installed nova has no api-paste.ini")


def with_filter(
    text: str, options: Mapping[str, str] | None = None, use: str = FILTER
) -> str:
    """Put the filter directly before the application in both pipelines.

    :param text: Nova's api-paste.ini
    :param options: local options of the filter's section
    :param use: what the section's ``use`` names
    :raises ValueError: where the file has not exactly the two pipelines
    """
    changed, count = _PIPELINE.subn(r"\1 state_policy \2", text)
    if count != PIPELINES:
        raise ValueError(f"{count} pipelines found, not {PIPELINES}")
    lines = [f"{key} = {value}" for key, value in (options or {}).items()]
    return "\n".join(
        [changed, "[filter:state_policy]", f"use = {use}", *lines, ""]
    )
