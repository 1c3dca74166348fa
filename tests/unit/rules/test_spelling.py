# SPDX-License-Identifier: Apache-2.0
"""A name that looks like one of the project's, and does nothing."""

import pytest

from state_policy.engine import operations
from state_policy.rules import RulesError, defaults, load, names, spelling

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
    "delete:wiat": "server:delete:wait",
    "delete:quarantine": "server:delete:quarantine",
    "deletequarantine": "server:delete:quarantine",
    "stop:quarantine": "server:stop",
    "stop:vip": "server:stop",
    "instance:delete": "server:delete",
    "instance.delte": "server:delete",
    "vm:delete": "server:delete",
    "vm_stop": "server:stop",
    "servers:delete": "server:delete",
    "class.stop": "server:stop",
    "server.power": "class:power",
    "rule:stop": "server:stop",
    "delete_wait": "server:delete:wait",
    "delete?": "server:delete",
    "pasue": "server:pause",
    "rebild": "server:rebuild",
    "create-image": "server:create_image",
    "migrateLive": "server:live_migrate",
    "createImage": "server:create_image",
    "os-migrateLive": "server:live_migrate",
    "reboot": "server:reboot_soft",
    "class.power": "class:power",
    "clas:any": "class:any",
    "quarantine_purge": "quarantine:purge",
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


OWN = [
    *("mine", "guard", "vip", "protected", "maintenance", "night"),
    *("a:b", "in_use", "not_in_prod", "golden", "owner", "ñ", "keep"),
    *("fresh", "delete_protected", "delete_allowed", "delete_ok"),
    *("can_delete", "no_delete", "delete_server", "stop_servers"),
    *("list_servers", "resize_ok", "live_migration", "power_ops"),
    *("read_only", "paused", "resized", "shelved", "rescued"),
    *("released", "created", "deleted", "quarantined", "rebooted"),
    *("restored", "deletes", "lists", "updates", "resizes", "rebuilt"),
    *("snapshot", "snapshots", "network", "networks", "disk", "disks"),
    *("console", "power", "read", "metadata", "purge", "purged"),
    *("release", "wait", "brake", "evidence", "escalated", "any"),
    *("create", "list", "attach", "reset", "server", "servers"),
    *("instance", "vm", "class", "quarantine", "quarantine_ok"),
    *("server_group", "server_busy", "vm_old", "class_a"),
    *("first_class", "acme:delete", "ops:stop", "helper:delete"),
    *("acme:server:delete", "group:server", "delt", "stp", "how"),
    *("top"),
]


@pytest.mark.parametrize("name", OWN)
def test_a_helper_that_nobody_uses_loads(tmp_path, name):
    path = tmp_path / "a.yaml"
    path.write_text(f'"{name}": "!"\n')
    assert name in load([path]).sources


@pytest.mark.parametrize("more", ["{}d", "{}s", "{}ed", "{}_ok", "my_{}"])
def test_more_letters_or_words_make_another_name(more):
    for name in defaults.texts():
        own = more.format("_".join(name.split(":")[1:] or [name]))
        if own not in operations.OPERATIONS:
            assert not names.reason_against(own, ()), own


def test_the_user_of_a_helper_may_be_commented_out(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        '"delete_protected": "server.tag:keep"\n'
        '# "server:delete": "not rule:delete_protected"\n'
    )
    assert list(load([path]).sources) == ["delete_protected"]


@pytest.mark.parametrize(
    "name", ["server:own", "class:own", "quarantine:own", "server:stop:own"]
)
def test_what_begins_as_the_projects_is_no_own_name(name):
    assert names.reason_against(name, (name,))


def test_every_name_of_the_project_is_known_by_its_letters():
    for name in defaults.texts():
        if name not in defaults.groups():
            assert spelling.meant(name.upper().replace(":", "-")) == name
    for name, operation in operations.OPERATIONS.items():
        action = (operation.action or name).replace("_", "")
        for spelt in (name.upper(), action, f"instance:{name}", f"{name}:x"):
            found = spelling.meant(spelt)
            assert found.startswith("server:"), (spelt, found)
        swapped = name[:-2] + name[-1] + name[-2]
        if len(name) > 4:
            assert spelling.meant(swapped).startswith("server:"), swapped
