# SPDX-License-Identifier: Apache-2.0
"""A command ends although a thread of its process hangs."""

from __future__ import annotations

import subprocess
import sys

import pytest

_PROGRAM = """
import sys, threading
import futurist
from cliff import command
from state_policy.cmd import app

POOL = futurist.ThreadPoolExecutor(1)

class Probe(command.Command):
    def take_action(self, parsed_args):
        POOL.submit(threading.Event().wait, {hangs})
        self.app.abandon = {abandon}
        self.app.stdout.write("told")
        return 1

build = app.Shell.__init__

def with_probe(self):
    build(self)
    self.command_manager.add_command("probe", Probe)

app.Shell.__init__ = with_probe
sys.argv = ["state-policy", "probe"]
sys.exit(app.main())
"""


@pytest.mark.parametrize(
    ("hangs", "abandon"),
    [(None, True), (0.1, False)],
)
def test_exit(hangs: float | None, abandon: bool) -> None:
    program = _PROGRAM.format(hangs=hangs, abandon=abandon)
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (found.returncode, found.stdout) == (1, "told"), found.stderr
