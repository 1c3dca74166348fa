# SPDX-License-Identifier: Apache-2.0
"""A name that looks like one of the project's, and does nothing."""

import pytest

from state_policy.engine import operations
from state_policy.rules import RulesError, defaults, load, spelling

LOOK_ALIKE = {
    "server.delete": "server:delete",
    "server-delete": "server:delete",
    "server_delete": "server:delete",
    "server/delete": "server:delete",
    "serverDelete": "server:delete",
    "SERVER:STOP": "server:stop",
    # A wide colon, and a letter that is Cyrillic.
    "server\uff1astop": "server:stop",
    "s\u0435rver:stop": "server:stop",
    "sever:delte": "server:delete",
    "Delete": "server:delete",
    "delte": "server:delete",
    "deleet": "server:delete",
    "deletes": "server:delete",
    "delete:wiat": "server:delete:wait",
    "delete:quarantine": "server:delete:quarantine",
    "deletequarantine": "server:delete:quarantine",
    "stop:quarantine": "server:stop",
    "instance:delete": "server:delete",
    "rule:stop": "server:stop",
    "delete_server": "server:delete",
    "evidence": "server:delete:evidence",
    "createImage": "server:create_image",
    "os-migrateLive": "server:live_migrate",
    "reboot": "server:reboot_soft",
    "class.power": "class:power",
    "power": "class:power",
    "clas:any": "class:any",
    "purge": "quarantine:purge",
    "quarantine_purge": "quarantine:purge",
    "server": "server:delete",
}


@pytest.mark.parametrize("name", LOOK_ALIKE)
def test_a_misspelt_name_is_refused(tmp_path, name):
    path = tmp_path / "a.yaml"
    path.write_text(f'# first\n"{name}": "!"\n')
    with pytest.raises(RulesError) as caught:
        load([path])
    assert [str(fault) for fault in caught.value.faults] == [
        f"{path}:2: `{name}`: no rule refers to it (did you mean"
        f" `{LOOK_ALIKE[name]}`?)"
    ]


@pytest.mark.parametrize("name", LOOK_ALIKE)
def test_a_helper_may_have_any_name(tmp_path, name):
    path = tmp_path / "a.yaml"
    path.write_text(
        f'"{name}": "server.locked:true"\n"server:pause": "not rule:{name}"\n'
    )
    assert name in load([path]).sources


def test_a_rule_without_effect_makes_no_helper(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text('"Delete": "!"\n"unused": "rule:Delete"\n')
    with pytest.raises(RulesError, match="did you mean `server:delete`"):
        load([path])


@pytest.mark.parametrize(
    "name",
    [
        *("mine", "guard", "vip", "protected", "maintenance", "night", "a:b"),
        *("in_use", "not_in_prod", "golden", "owner", "ñ", "keep", "fresh"),
    ],
)
def test_a_helper_that_nobody_uses_loads(tmp_path, name):
    path = tmp_path / "a.yaml"
    path.write_text(f'"{name}": "!"\n')
    assert name in load([path]).sources


def test_every_name_of_the_project_is_known_by_its_letters():
    for name in defaults.texts():
        if name not in defaults.groups():
            assert spelling.meant(name.upper().replace(":", "-")) == name
    for name in operations.OPERATIONS:
        found = spelling.meant(name[:-1] + "xy"[name.endswith("x")])
        assert found.startswith(("server:", "class:")), (name, found)
