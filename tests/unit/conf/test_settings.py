# SPDX-License-Identifier: Apache-2.0
"""The options and the frozen settings made from them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from oslo_config import cfg

from state_policy import conf as our_conf
from state_policy.conf import Settings, SettingsError


def _conf(tmp_path: Path, text: str = "") -> cfg.ConfigOpts:
    file = tmp_path / "nova.conf"
    file.write_text(text)
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(file)], project="nova")
    our_conf.register_opts(conf)
    return conf


def _settings(tmp_path: Path, text: str = "") -> Settings:
    return Settings.from_conf(_conf(tmp_path, text))


def test_defaults_are_those_of_the_options(tmp_path):
    settings = _settings(tmp_path)
    plain = dataclasses.replace(
        Settings(),
        policy_file=tmp_path / "state_policy.yaml",
        policy_dirs=(tmp_path / "state_policy.d",),
        search=settings.search,
    )
    assert settings == plain


def test_an_override_that_is_gone_names_no_policy_file(tmp_path):
    conf = _conf(tmp_path)
    conf.set_override("policy_file", "absent.yaml", group="state_policy")
    with pytest.raises(SettingsError, match=r"absent\.yaml"):
        Settings.from_conf(conf)
    conf.clear_override("policy_file", group="state_policy")
    expected = tmp_path / "state_policy.yaml"
    assert Settings.from_conf(conf).policy_file == expected


def test_a_named_default_has_to_exist(tmp_path):
    text = "[state_policy]\npolicy_file = state_policy.yaml\n"
    with pytest.raises(SettingsError, match=r"no file"):
        _settings(tmp_path, text)


def test_each_option_is_a_field_and_the_reverse():
    groups = {
        group.name: {option.dest for option in options}
        for group, options in our_conf.list_opts()
    }
    own = {f.name for f in dataclasses.fields(Settings)}
    theirs = {f.name for f in dataclasses.fields(our_conf.QuarantineSettings)}
    assert groups["state_policy"] == own - {
        "quarantine",
        "search",
        "places",
        "lacking",
    }
    assert groups["state_policy_quarantine"] == theirs


def test_registering_twice_and_late_is_harmless(tmp_path):
    conf = _conf(tmp_path)
    our_conf.register_opts(conf)
    assert Settings.from_conf(conf).mode == "enforce"


def test_settings_are_frozen(tmp_path):
    with pytest.raises(dataclasses.FrozenInstanceError):
        _settings(tmp_path).mode = "audit"


def test_file_beside_the_configuration_is_found(tmp_path):
    (tmp_path / "rules.yaml").touch()
    (tmp_path / "more.d").mkdir()
    (tmp_path / "elsewhere").mkdir()
    settings = _settings(
        tmp_path,
        "[state_policy]\npolicy_file = rules.yaml\n"
        f"policy_dirs = more.d\npolicy_dirs = {tmp_path}/elsewhere\n",
    )
    assert settings.policy_file == tmp_path / "rules.yaml"
    assert settings.policy_dirs == (
        tmp_path / "more.d",
        tmp_path / "elsewhere",
    )


def test_a_named_directory_has_to_exist(tmp_path):
    text = "[state_policy]\npolicy_dirs = {}\n"
    # The default's name, too, once somebody wrote it down.
    for name in ("policy.d", "state_policy.d"):
        with pytest.raises(
            SettingsError,
            match=rf"policy_dirs: no directory `{tmp_path}/{name}`",
        ):
            _settings(tmp_path, text.format(name))
        (tmp_path / name).mkdir()
        found = _settings(tmp_path, text.format(name))
        assert found.policy_dirs == (tmp_path / name,)
    with pytest.raises(SettingsError, match=r"no directory `.*/gone`"):
        found.with_overrides({"policy_dirs": "policy.d, gone"})
    assert found.with_overrides({"policy_dirs": "policy.d"}).policy_dirs == (
        tmp_path / "policy.d",
    )


def test_a_named_directory_is_one_behind_its_link(tmp_path):
    (tmp_path / "file").write_text('"server:stop": "!"')
    (tmp_path / "dangling.d").symlink_to("gone")
    (tmp_path / "link.d").symlink_to("file")
    for name in ("file", "dangling.d", "link.d", "file/rules.d"):
        with pytest.raises(SettingsError) as caught:
            _settings(tmp_path, f"[state_policy]\npolicy_dirs = {name}\n")
        assert str(caught.value) == (
            f"[state_policy] policy_dirs: no directory `{tmp_path}/{name}`"
        )
        with pytest.raises(SettingsError, match="no directory"):
            _settings(tmp_path).with_overrides({"policy_dirs": name})
    (tmp_path / "gone").mkdir()
    found = _settings(tmp_path, "[state_policy]\npolicy_dirs = dangling.d\n")
    assert found.policy_dirs == (tmp_path / "dangling.d",)


def test_an_empty_name_is_no_name(tmp_path):
    text = (
        "[state_policy]\npolicy_dirs =\nshadow_policy_file =\n"
        "disable_by_file_path =\n"
    )
    given = dict.fromkeys(("policy_dirs", "shadow_policy_file"), "")
    settings = _settings(tmp_path, text)
    for found in (settings, _settings(tmp_path).with_overrides(given)):
        # Not the directory of nova.conf, with all that is in it.
        assert found.policy_dirs == ()
        assert found.shadow_policy_file is None
        assert found.disable_by_file_path is None
    with pytest.raises(SettingsError, match="policy_file: no file"):
        _settings(tmp_path, "[state_policy]\npolicy_file =\n")


def test_a_file_that_cannot_be_looked_at_is_not_passed_over(tmp_path):
    # As in a directory that must not be entered; root may enter any.
    (tmp_path / "state_policy.yaml").symlink_to("state_policy.yaml")
    assert _settings(tmp_path).policy_file == tmp_path / "state_policy.yaml"
    (tmp_path / "loop").symlink_to("loop")
    text = "[state_policy]\npolicy_file = loop/rules.yaml\n"
    with pytest.raises(SettingsError, match=r"no file `.*/loop/rules\.yaml`"):
        _settings(tmp_path, text)


def test_a_directory_of_configuration_is_searched_first(tmp_path):
    directory = tmp_path / "conf.d"
    directory.mkdir()
    for place in (directory, tmp_path):
        (place / "state_policy.yaml").touch()
    (tmp_path / "nova.conf").touch()
    conf = cfg.ConfigOpts()
    conf(
        [
            "--config-file",
            str(tmp_path / "nova.conf"),
            "--config-dir",
            str(directory),
        ],
        project="nova",
    )
    our_conf.register_opts(conf)
    found = Settings.from_conf(conf).policy_file
    assert found == directory / "state_policy.yaml"


def test_absent_default_file_is_fine_a_named_one_is_not(tmp_path):
    found = _settings(tmp_path)
    assert not found.policy_file.exists()
    home = Path("/etc/state_policy")
    assert found.places == {
        tmp_path / name: (tmp_path / name, home / name)
        for name in ("state_policy.yaml", "state_policy.d")
    }
    (tmp_path / "state_policy.d").mkdir()
    assert _settings(tmp_path).places == found.places
    with pytest.raises(SettingsError, match=r"policy_file: no file `.*no\.y"):
        _settings(tmp_path, "[state_policy]\npolicy_file = no.yaml\n")


def test_the_places_of_a_file_are_known_wherever_it_is(tmp_path):
    """A file found last may be overtaken; an absolute path has one place."""
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
        (folder / "x.conf").write_text("")
    (folders[0] / "own.yaml").write_text("")
    conf = cfg.ConfigOpts()
    # What is read later is more wanted.
    files = [f"--config-file={folder / 'x.conf'}" for folder in folders]
    conf(files, project="nova")
    our_conf.register_opts(conf)
    places = [*reversed(folders), Path("/etc/state_policy")]
    own = folders[0] / "own.yaml"
    found = Settings.from_conf(conf).with_overrides(
        {"policy_file": "own.yaml"}
    )
    assert found.policy_file == own
    assert found.places[own] == tuple(place / own.name for place in places)
    (folder,) = found.policy_dirs
    assert found.places[folder] == tuple(p / folder.name for p in places)
    found = found.with_overrides({"policy_file": str(own)})
    assert found.places[own] == (own,)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("mode", "enfroce"),
        ("on_unknown", "deny"),
        ("retry_after", "0"),
        ("retry_after", "soon"),
        ("max_body", "12"),
    ],
)
def test_bad_value_names_option_and_value(tmp_path, option, value):
    with pytest.raises(SettingsError) as caught:
        _settings(tmp_path, f"[state_policy]\n{option} = {value}\n")
    assert f"[state_policy] {option}:" in str(caught.value)
    assert f"`{value}` is not usable: " in str(caught.value)
    assert "LocationInfo" not in str(caught.value)
    assert f"(in {tmp_path / 'nova.conf'})" in str(caught.value)
    with pytest.raises(SettingsError) as caught:
        _settings(tmp_path).with_overrides({option: value})
    assert f"[state_policy] {option}: `{value}`" in str(caught.value)


def test_bad_value_of_the_environment_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("OS_STATE_POLICY__MODE", "aduit")
    with pytest.raises(SettingsError, match="mode: `aduit` is not usable"):
        _settings(tmp_path)


def test_all_bad_values_are_named_at_once(tmp_path):
    with pytest.raises(SettingsError) as caught:
        _settings(tmp_path, "[state_policy]\nmode = x\nmax_body = y\n")
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("user = u", "projects: must name a project"),
        ("projects = a1", "user: must be set"),
        ("projects = a1, a1\nuser = u", "projects: names a project twice"),
        (
            "projects = a1\nuser = u\non_full = next",
            "on_full: `next` needs a second project",
        ),
        (
            "projects = a1\nuser = u\nexcluded_projects = b2,a1",
            "excluded_projects: `a1` is in projects too",
        ),
        (
            "projects = a1\nuser = u\nretention = 60",
            "retention: 60 s is shorter than the deadline",
        ),
        (
            "projects = a1,troubleshooting\nuser = u",
            "projects: `troubleshooting` is no id of a project",
        ),
        (
            "projects = a1\nuser = u\nexcluded_projects = billing",
            "excluded_projects: `billing` is no id of a project",
        ),
    ],
)
def test_combinations_that_cannot_work(tmp_path, lines, said):
    text = f"[state_policy_quarantine]\nenabled = true\n{lines}\n"
    with pytest.raises(SettingsError) as caught:
        _settings(tmp_path, text)
    assert f"[state_policy_quarantine] {said}" in str(caught.value)
    # What is switched off need not be complete.
    off = text.replace("enabled = true", "enabled = false")
    assert not _settings(tmp_path, off).quarantine.enabled


def test_two_projects_may_be_tried_in_turn(tmp_path):
    settings = _settings(
        tmp_path,
        "[state_policy_quarantine]\nenabled = true\nprojects = a1, b2\n"
        "user = u\non_full = next\n",
    )
    assert settings.quarantine.projects == ("a1", "b2")


def test_paste_overrides_are_typed_and_local(tmp_path):
    for name in ("a.d", "b.d"):
        (tmp_path / name).mkdir()
    conf = _conf(tmp_path)
    settings = Settings.from_conf(conf)
    changed = settings.with_overrides(
        {
            "mode": "audit",
            "retry_after": "5",
            "policy_dirs": f"a.d, {tmp_path}/b.d",
            "disable_by_file_path": "/run/off",
            "quarantine_enabled": "true",
            "quarantine_projects": "a1,b2",
            "quarantine_user": "u",
            "quarantine_request_budget": "1.5",
        }
    )
    assert (changed.mode, changed.retry_after) == ("audit", 5)
    assert changed.policy_dirs == (tmp_path / "a.d", tmp_path / "b.d")
    assert changed.disable_by_file_path == Path("/run/off")
    assert changed.quarantine.enabled is True
    assert changed.quarantine.projects == ("a1", "b2")
    assert changed.quarantine.request_budget == 1.5
    assert changed.quarantine.deadline == settings.quarantine.deadline
    # Neither the first settings nor the configuration has moved.
    assert settings.mode == conf.state_policy.mode == "enforce"
    assert not settings.quarantine.enabled


@pytest.mark.parametrize(
    "name", ["modes", "projects", "quarantine_mode", "quarantine", "search"]
)
def test_unknown_paste_key_is_refused(tmp_path, name):
    with pytest.raises(SettingsError, match=f"`{name}` is not an option"):
        _settings(tmp_path).with_overrides({name: "x"})


def test_override_of_the_policy_file_must_exist(tmp_path):
    settings = _settings(tmp_path)
    with pytest.raises(SettingsError, match="policy_file: no file"):
        settings.with_overrides({"policy_file": "gone.yaml"})
    (tmp_path / "here.yaml").touch()
    found = settings.with_overrides({"policy_file": "here.yaml"})
    assert found.policy_file == tmp_path / "here.yaml"


def test_help_is_whole_sentences():
    for group, options in our_conf.list_opts():
        for option in options:
            text = option.help.strip()
            first = text.splitlines()[0]
            assert first[0].isupper(), (group.name, option.name)
            assert len(text) > 40, (group.name, option.name)
