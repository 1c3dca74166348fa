# SPDX-License-Identifier: Apache-2.0
"""``state-policy-status upgrade check`` on good and on bad API hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from state_policy.cmd import status

ETC = Path(__file__).parents[3] / "etc" / "state_policy"
PASTE = (ETC / "api-paste.ini.sample").read_text()


@pytest.fixture
def host(tmp_path):
    """Return a directory as an API host has it, all in order."""
    (tmp_path / "nova.conf").write_text("[state_policy]\nmode = audit\n")
    (tmp_path / "api-paste.ini").write_text(PASTE)
    (tmp_path / "state_policy.yaml").write_text('"server:stop": "!"\n')
    return tmp_path


@pytest.fixture
def check(host, capsys):
    """Return a function that runs the check: exit code and findings."""

    def run(*options):
        code = status.main(
            [
                "--config-file",
                str(host / "nova.conf"),
                *options,
                "upgrade",
                "check",
                "--json",
            ]
        )
        told = json.loads(capsys.readouterr().out)
        return code, {
            item["check"]: (item["result"], item["details"])
            for item in told["checks"]
        }

    return run


def test_a_host_in_order(check):
    code, found = check()
    assert code == 0, found
    assert len(found) == 4
    assert {result for result, _ in found.values()} == {0}


def test_bad_configuration(check, host):
    (host / "nova.conf").write_text("[state_policy]\nmode = adit\n")
    code, found = check()
    assert code == 2
    assert "`adit` is not usable" in found["Configuration"][1]


def test_bad_option_in_the_paste_file(check, host):
    (host / "api-paste.ini").write_text(PASTE + "\nmoode = warn\n")
    code, found = check()
    assert code == 2
    assert "`moode` is not an option" in found["Configuration"][1]


@pytest.mark.parametrize(
    ("ours", "ready"), [("", False), ("max_body = 200000\n", True)]
)
def test_bodies_that_nova_takes_and_no_rule_sees(check, host, ours, ready):
    (host / "nova.conf").write_text(
        f"[state_policy]\n{ours}"
        "[oslo_middleware]\nmax_request_body_size = 200000\n"
    )
    code, found = check()
    assert (code == 0) is ready
    told = found["Configuration"][1] or ""
    assert ("passes by every rule" in told) is not ready


def test_rules_that_do_not_load(check, host):
    (host / "state_policy.yaml").write_text(
        '"server:stop": "server.vm_sate:active"\n'
    )
    code, found = check()
    assert code == 2
    assert "state_policy.yaml:1: " in found["Rules"][1]
    assert "server.vm_sate" in found["Rules"][1]


def test_rules_that_ask_for_what_is_switched_off(check, host):
    (host / "state_policy.yaml").write_text(
        '"server:delete:quarantine": "rule:building"\n'
    )
    code, found = check()
    assert code == 2
    assert "server:delete:quarantine" in found["Rules"][1]


def test_no_rules_is_a_warning(check, host):
    (host / "state_policy.yaml").unlink()
    code, found = check()
    assert code == 1
    assert "everything is allowed" in found["Rules"][1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "legacy_v2_compatible state_policy osapi",
            "legacy_v2_compatible osapi",
            "legacy_v2_compatible] keystone is without the filter",
        ),
        (
            "keystonecontext state_policy osapi",
            "state_policy keystonecontext osapi",
            "not directly before",
        ),
        (
            "keystonecontext state_policy osapi",
            "keystonecontext state_policy state_policy osapi",
            "has the filter twice",
        ),
        (
            "egg:state-policy#state_policy",
            "egg:other#filter",
            "no section is the filter",
        ),
        ("osapi_compute_app_v21", "another_app", "no pipeline ends in"),
        ("[filter:state_policy]", "[filter:state_policy", "api-paste.ini"),
    ],
)
def test_faults_of_the_paste_file(check, host, old, new, said):
    assert old in PASTE
    (host / "api-paste.ini").write_text(PASTE.replace(old, new))
    code, found = check()
    assert code == 2
    result, details = found["Filter in api-paste.ini"]
    assert result == 2
    assert said in details


def test_the_factory_may_be_named_directly(check, host):
    (host / "api-paste.ini").write_text(
        PASTE.replace(
            "use = egg:state-policy#state_policy",
            "paste.filter_factory = state_policy.deploy:filter_factory",
        )
    )
    assert check()[0] == 0


def test_absent_paste_file(check, host):
    (host / "api-paste.ini").unlink()
    (host / "nova.conf").write_text(
        "[wsgi]\napi_paste_config = no-such-paste.ini\n"
    )
    code, found = check()
    assert code == 2
    assert "not found" in found["Filter in api-paste.ini"][1]


@pytest.mark.parametrize("there", [False, True])
def test_a_paste_file_that_cannot_be_read(check, host, there):
    """A slip of the pen, or no right: what opens a directory fails, too."""
    named = host / "other.ini"
    if there:
        named.mkdir()
    code, found = check("--paste-file", str(named))
    assert code == 2
    assert found["Rules"] == (1, "not looked at: no configuration")
    for name in ("Configuration", "Filter in api-paste.ini"):
        result, details = found[name]
        assert result == 2
        assert str(named) in details


def test_a_nova_that_differs(check, monkeypatch):
    from state_policy.drivers.nova import names

    optional = next(name for name in names.NAMES if name.feature)
    needed = next(name for name in names.NAMES if not name.feature)
    monkeypatch.setattr(
        names, "differences", lambda: [(optional, "takes nothing")]
    )
    code, found = check()
    assert (code, found["Names of Nova"][0]) == (1, 1)
    assert f"{optional.path}: takes nothing" in found["Names of Nova"][1]
    monkeypatch.setattr(names, "differences", lambda: [(needed, "gone")])
    code, found = check()
    assert (code, found["Names of Nova"][0]) == (2, 2)


def test_a_configuration_that_is_not_there(capsys):
    code = status.main(["--config-file", "no-such.conf", "upgrade", "check"])
    assert code == 255
    assert "no-such.conf" in capsys.readouterr().err


def test_table_for_people(host, capsys):
    code = status.main(
        ["--config-file", str(host / "nova.conf"), "upgrade", "check"]
    )
    assert code == 0
    assert "Check: Rules" in capsys.readouterr().out
