# SPDX-License-Identifier: Apache-2.0
"""Rules that allow, and the mode audit, change no byte either."""

from __future__ import annotations

import logging

from tests.functional import base
from tests.functional.test_unchanged import _Unchanged


class TestAllowed(_Unchanged):
    """Every operation has facts read for it and is allowed."""

    RULES = (
        '"class:any": "not server.az:elsewhere"\n"class:read": "role:x or @"'
    )
    OPTIONS = {"explain": False}
    QUARANTINE = base.QUARANTINED

    def test_through_v2_1_of_today(self) -> None:
        self._compare("/v2.1", self.microversion)


class TestAudit(_Unchanged):
    """Every operation would be refused, and nothing is."""

    RULES = """
"class:any": "!"
"class:read": "!"
"server:delete": "@"
"server:delete:quarantine": "@"
"""
    OPTIONS = {"mode": "audit"}
    QUARANTINE = base.QUARANTINED

    def test_through_both(self) -> None:
        with self.assertLogs("state_policy.decisions", logging.INFO) as log:
            self._compare("/v2.1", None)
            self._compare("/v2", None)
        said = "".join(log.output)
        self.assertIn('"verdict": "deny"', said)
        self.assertIn('"verdict": "quarantine"', said)
        self.assertIn('"note": "not carried out"', said)
        self.assertEqual([], self.listed(base.INSPECTOR))
