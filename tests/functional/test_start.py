# SPDX-License-Identifier: Apache-2.0
"""What is not usable keeps Nova's API from starting, and the error says what.

The application is loaded by Nova's own loader from a paste file, as by a WSGI
server: either there is a whole one, or none.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping

import pytest

from state_policy.cmd import app as shell
from state_policy.deploy import DeployError
from tests.functional import base
from tests.functional.harness import paste

QUARANTINE = {"quarantine_enabled": "true", "quarantine_user": "keeper"}

#: A paste section's options, rules, and what the error must say.
BAD: tuple[tuple[Mapping[str, str], str, tuple[str, ...]], ...] = (
    ({"polcy_file": "x"}, "", ("`polcy_file` is not an option",)),
    ({"mode": "enforced"}, "", ("mode", "`enforced`")),
    ({"policy_file": "/no/such.yaml"}, "", ("no file `/no/such.yaml`",)),
    (
        {},
        '"server:stop": "server.vm_sate:active"\n"server:stopp": "@"\n',
        ("{file}:1: ", "{file}:2: ", "vm_sate", "stopp"),
    ),
    ({}, '"server:delete:wait": "@"', ("{file}:1: ", "wait")),
    ({}, '"server:delete:quarantine": "@"', ("{file}:1: ", "quarantine")),
    (QUARANTINE, "", ("projects: must name a project",)),
    (
        {"quarantine_enabled": "true", "quarantine_projects": "a0"},
        "",
        ("user: must be set",),
    ),
    (
        {**QUARANTINE, "quarantine_projects": "troubleshooting"},
        "",
        ("projects: `troubleshooting` is no id of a project",),
    ),
    ({"driver": "nowhere"}, "", ("`nowhere` is not installed",)),
)


class TestStart(base.NovaTestCase):
    """Beside a Nova that runs, other applications are tried."""

    RULES = ""

    def test_never_half(self) -> None:
        for options, rules, said in BAD:
            with self.subTest(options=options, rules=rules):
                self.policy_file.write_text(rules)
                text = paste.with_filter(
                    paste.installed().read_text(), options
                )
                with pytest.raises(DeployError) as raised:
                    self.load(text)
                for part in said:
                    wanted = part.format(file=self.policy_file)
                    self.assertIn(wanted, str(raised.value))

    def test_both_pipelines_need_it_whole(self) -> None:
        """An error in the section of one pipeline alone is one too."""
        text = paste.with_filter(paste.installed().read_text())
        head, word, tail = text.rpartition(" state_policy osapi")
        text = head + word.replace("state_policy", "other") + tail
        text += f"[filter:other]\nuse = {paste.FILTER}\nmodes = audit\n"
        with self.assertRaisesRegex(DeployError, "`modes` is not an option"):
            self.load(text)

    def test_what_is_usable_starts(self) -> None:
        self.policy_file.write_text('"server:stop": "server.vm_state:active"')
        text = paste.with_filter(
            paste.installed().read_text(),
            {**QUARANTINE, "quarantine_projects": base.QUARANTINE_PROJECT},
        )
        answer = self.ask("GET", "/servers", app=self.load(text))
        self.assertEqual(200, answer.status)

    def test_check_says_the_same(self) -> None:
        """``state-policy check FILE``, with no Nova of its own."""
        for rules, code in (
            ('"server:stop": "server.vm_state:active"\n', 0),
            ("", 0),
            ('"server:stop": "server.vm_sate:active"\n', 3),
        ):
            self.policy_file.write_text(rules)
            out = io.StringIO()
            with (
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(out),
            ):
                found = shell.main(["check", str(self.policy_file)])
            self.assertEqual(code, found, out.getvalue())
            if code:
                self.assertIn(f"{self.policy_file}:1: ", out.getvalue())
