# SPDX-License-Identifier: Apache-2.0
"""The kinds that only the sweep's rules know, on a server in quarantine."""

from __future__ import annotations

from state_policy import rules
from state_policy.engine.ruleset import RuleSet
from tests.functional.quarantine.support import RequestCase


class TestRulesOfTheSweep(RequestCase):
    """A build that ends after all, and is given back by a rule."""

    def stated(self, text: str) -> RuleSet:
        file = self.directory / "sweep.yaml"
        file.write_text(f'"quarantine:release": "{text}"\n')
        return rules.load([file])

    def test_age_and_completed(self) -> None:
        server, hold = self.boot_held()
        self.assertEqual(204, self.delete(server).status)
        self.assert_concealed(server)
        hold.release()
        self.wait_task(server, None)
        self.wait_for(
            lambda: "settle" in self.swept(rules=self.stated("!")), "settled"
        )
        self.assert_settled(server)
        for text in (
            "quarantine.age:>=1h",
            "quarantine.completed:false",
            "quarantine.age:<1h and server.vm_state:error",
        ):
            self.assertEqual([], self.swept(rules=self.stated(text)), text)
        found = self.stated(
            "quarantine.age:<1h and quarantine.completed:true and "
            "server.vm_state:active"
        )
        self.assertEqual(["release"], self.swept(rules=found))
        self.assert_owners(server)
