# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark of this package."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path


def main() -> None:
    """Call ``main`` of each module."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.startswith("_"):
            print(f"== {module.name}")
            importlib.import_module(f"benchmarks.{module.name}").main()


if __name__ == "__main__":
    main()
