# SPDX-License-Identifier: Apache-2.0
"""SELECTs that a rule costs, for every kind: in the whole filter."""

from __future__ import annotations

from tests.functional.nova_reading import test_every_kind
from tests.functional.wsgi import test_refusals

#: Where a server is, and its row.
ROW = {"api": 1, "cell1": 1}

#: Relations beside the row, each one SELECT more, and the kinds that need it.
MORE = {
    "cell1": (
        ("server.state_age", "server.attempts"),
        ("server.running", "server.running_age"),
        ("server.host_up",),
        ("server.migration",),
        ("server.hypervisor",),
        ("server.flavor",),
        ("server.volumes", "server.volume_backed"),
        ("server.metadata",),
        ("server.tag",),
    ),
    "api": (("server.aggregate", "server.az"),),
}
#: In the row.
IN_THE_ROW = {
    "server.vm_state",
    "server.task_state",
    "server.power_state",
    "server.age",
    "server.launched",
    "server.disable_terminate",
    "server.locked",
    "server.host",
    "server.image",
    "server.cell_up",
}
#: Counted over many servers and kept for a second.
COUNTED = {"project.deletes:10m", "cloud.stuck"}


class TestEveryRule(test_refusals.TestCost):
    """One Nova for all rule sets."""

    QUARANTINE = {}

    def test_selects(self) -> None:
        made = self.operator.post_aggregate({"aggregate": {"name": "racks"}})
        self.operator.add_host_to_aggregate(made["id"], "compute")
        server = self.boot()
        table = test_every_kind.table()
        relations = [
            (where, kinds) for where, all_ in MORE.items() for kinds in all_
        ]
        known = {kind for _, kinds in relations for kind in kinds}
        self.assertEqual(set(table), known | IN_THE_ROW | COUNTED)
        self.assertEqual({}, self.costs(server, "@"))
        for kind in IN_THE_ROW:
            self.assertEqual(ROW, self.costs(server, self.true(kind)), kind)
        row = " and ".join(self.true(kind) for kind in sorted(IN_THE_ROW))
        self.assertEqual(ROW, self.costs(server, row))
        for where, kinds in relations:
            expected = {**ROW, where: ROW[where] + 1}
            for kind in kinds:
                self.assertEqual(
                    expected, self.costs(server, self.true(kind)), kind
                )
            text = " and ".join(self.true(kind) for kind in kinds)
            self.assertEqual(expected, self.costs(server, text), kinds)
        self.together(server, relations)

    def together(
        self, server: str, relations: list[tuple[str, tuple[str, ...]]]
    ) -> None:
        """Two, three ... and all relations in one rule."""
        expected, text = dict(ROW), self.true("server.vm_state")
        for where, kinds in relations:
            expected[where] += 1
            text += f" and {self.true(kinds[0])}"
            self.assertEqual(expected, self.costs(server, text), text)
        self.assertEqual(len(relations) + 2, sum(expected.values()))

    def true(self, kind: str) -> str:
        """Return a condition that holds."""
        match = test_every_kind.table()[kind][test_every_kind.PLACES[0]]
        if match == "IMAGE":
            return f"not {kind}:none"
        return test_every_kind.text_of(kind, match)

    def costs(self, server: str, text: str) -> dict[str, int]:
        """Return the SELECTs of an operation that a rule allows."""
        self.policy_file.write_text(f'"server:pause": "{text}"\n')
        return self._cost(server, "pause", guarded=False)
