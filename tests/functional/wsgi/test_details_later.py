# SPDX-License-Identifier: Apache-2.0
"""A rule refuses before Nova looks at versions and schemas; nobody gains."""

from __future__ import annotations

from tests.functional import base
from tests.functional.harness import paste

NETWORK = {"addFixedIp": {"networkId": "x"}}
REBUILD = {"rebuild": {"nope": 1}}


class TestDetailsLater(base.NovaTestCase):
    """What Nova refuses for a detail is refused by the rule instead."""

    RULES = '"class:network": "!"\n"class:disk": "!"\n'

    def test_who_may_meets_the_rule_and_others_meet_nova(self) -> None:
        server = self.boot()
        plain = self.load(paste.installed().read_text())
        for action, theirs in ((NETWORK, 404), (REBUILD, 400)):
            # The one is gone since 2.44, the other breaks its schema.
            self.assertEqual(
                theirs, self.act(server, action, app=plain).status
            )
            self.assertEqual(403, self.act(server, action).status)
            for who in (base.READER, base.FOREIGNER):
                answers = [
                    self.act(server, action, who=who, app=app)
                    for app in (plain, None)
                ]
                self.assertEqual(*(a.status for a in answers))
                self.assertEqual(*(a.body for a in answers))
