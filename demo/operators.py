# SPDX-License-Identifier: Apache-2.0
"""The operator's commands, run in this process on the same databases."""

from __future__ import annotations

from typing import Any

from demo.cloud import Cloud


class Operators:
    """What ``state-policy quarantine`` does, without its process."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def list(self) -> list[dict[str, Any]]:
        raise NotImplementedError

    def show(self, server: str) -> dict[str, Any]:
        raise NotImplementedError

    def sweep(self) -> set[str]:
        raise NotImplementedError

    def release(self, server: str) -> None:
        raise NotImplementedError
