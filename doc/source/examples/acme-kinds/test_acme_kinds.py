# SPDX-License-Identifier: Apache-2.0
"""Tests of the kind: the contract, and what it reads."""

import acme_kinds
import pytest

from state_policy.rules.kinds import Subject
from state_policy.rules.kinds.contract import KindContract


class TestMaintenance(KindContract):
    name = "acme.maintenance"
    kind = acme_kinds.Maintenance
    good = ("true", "false")
    bad = ("yes", "True", "true,false")
    values = (True, False, None)


@pytest.mark.parametrize(
    ("host", "wanted"), [("c1", True), ("c2", False), (None, None)]
)
def test_read(tmp_path, monkeypatch, host, wanted):
    path = tmp_path / "maintenance"
    path.write_text("c1\nc9\n")
    monkeypatch.setattr(acme_kinds, "HOSTS", path)
    subject = Subject("s", "p", {}, {"server.host": host})
    read = acme_kinds.Maintenance.read("acme.maintenance", subject)
    assert read is wanted
