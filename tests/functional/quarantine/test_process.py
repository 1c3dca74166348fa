# SPDX-License-Identifier: Apache-2.0
"""The commands in a process of their own, as cron starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "import sys; from state_policy.cmd import app; sys.exit(app.main())"


@pytest.mark.parametrize("command", ["list", "sweep"])
def test_standard_output_is_for_tables(tmp_path: Path, command: str) -> None:
    """A nova.conf that names no log file must not put the log among them."""
    file = tmp_path / "nova.conf"
    file.write_text("[DEFAULT]\ndebug = true\ntransport_url = fake:/\n")
    options = ["--config-file", str(file), "--no-paste-file"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *options, "quarantine", command],
        capture_output=True,
        text=True,
        timeout=120,
        env={k: v for k, v in os.environ.items() if not k.startswith("OS_")},
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "[state_policy_quarantine] enabled is false" in done.stderr
