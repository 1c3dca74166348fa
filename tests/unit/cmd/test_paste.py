# SPDX-License-Identifier: Apache-2.0
"""Which options of an api-paste.ini count for commands, and when none do."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from state_policy.cmd import config, pipelines, status
from state_policy.conf import Settings, SettingsError

PIPELINES = """
[composite:v21]
use = call:nova.api.auth:pipeline_factory_v21
keystone = request_log {v21} osapi_compute_app_v21

[composite:v2]
use = call:nova.api.auth:pipeline_factory_v21
keystone = request_log {v2} osapi_compute_app_v21
"""
OURS = "[filter:{name}]\nuse = egg:state-policy#state_policy\n"


@pytest.fixture
def paste(tmp_path):
    """Return a function that writes a paste file beside ``nova.conf``."""
    (tmp_path / "nova.conf").write_text("[state_policy]\nmode = audit\n")

    def paste(text, v21="one", v2="one", name="api-paste.ini"):
        path = tmp_path / name
        path.write_text(PIPELINES.format(v21=v21, v2=v2) + text)
        return path

    return paste


def settings(path, base=None):
    """Return what the filters of a paste file agree on."""
    found = pipelines.read(path)
    return found.settings((base or Settings(mode="audit")).with_overrides)


def section(name="one", **options):
    """Return a section that is the filter."""
    lines = [f"{key} = {value}\n" for key, value in options.items()]
    return OURS.format(name=name) + "".join(lines)


def test_as_paste_reads_it(paste, tmp_path):
    """What a section means is paste's to say: the API has it from there."""
    (tmp_path / "rules.yaml").write_text("")
    path = paste(
        "[DEFAULT]\nseconds = 7\n"
        + section(policy_file="%(here)s/rules.yaml")
        + "get retry_after = seconds\n"
        + "[filter:two]\nuse = one\nmode = warn\n",
        v21="two",
        v2="two",
    )
    found = settings(path)
    assert found.policy_file == tmp_path / "rules.yaml"
    assert (found.retry_after, found.mode) == (7, "warn")
    # The DEFAULT section's options are the whole file's, not the filter's.
    assert pipelines.read(path).filters["one"].keys() == {
        "policy_file",
        "retry_after",
    }


@pytest.mark.parametrize(
    "use",
    [
        "use = egg:state_policy#state_policy",
        "use = call:state_policy.deploy:filter_factory",
        "paste.filter_factory = state_policy.deploy:filter_factory",
    ],
)
def test_every_way_to_name_the_filter(paste, use):
    path = paste(f"[filter:one]\n{use}\nmode = warn\n")
    assert settings(path).mode == "warn"


def test_different_options_are_nobody_s(paste):
    path = paste(
        section("one", mode="enforce", quarantine_deadline="60")
        + section("two", retry_after="9"),
        v2="two",
    )
    with pytest.raises(SettingsError) as raised:
        settings(path)
    assert str(raised.value) == (
        f"{path}: the filters `one`, `two` of its pipelines differ in "
        "`mode`, `quarantine_deadline`, `retry_after`; they must be the same"
    )


def test_options_that_come_to_the_same(paste):
    """One section says what the other leaves to nova.conf."""
    path = paste(section("one", mode="audit") + section("two"), v2="two")
    assert settings(path) == Settings(mode="audit")


def test_a_section_in_no_pipeline_is_nobody_s(paste):
    path = paste(section("one") + section("two", mode="enforce", bad="1"))
    assert settings(path).mode == "audit"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[filter:one]\nuse = egg:state-policy#state_policy\n" * 2, "one"),
        (section(policy_file="%(nowhere)s/rules.yaml"), "nowhere"),
        (section() + "get mode = nowhere\n", "nowhere"),
    ],
)
def test_what_the_api_would_not_start_with(paste, text, said):
    with pytest.raises(ValueError, match=said):
        pipelines.read(paste(text))


def test_a_section_that_uses_itself(paste):
    assert not pipelines.read(paste("[filter:one]\nuse = one\n")).filters


# -- the commands -------------------------------------------------------------


@pytest.fixture
def explain(run, tmp_path):
    """Return a function that explains a stop by the configured rules."""

    def explain(*options):
        conf = tmp_path / "nova.conf"
        return run("--config-file", conf, *options, "explain", "stop")

    return explain


@pytest.fixture
def denied(tmp_path):
    """Return the name of a file with rules that deny a stop."""
    (tmp_path / "never.yaml").write_text('"server:stop": "!"\n')
    return "never.yaml"


def test_rules_that_the_section_names(paste, explain, denied):
    paste(section(policy_file=denied))
    code, lines, err = explain()
    assert (code, lines[0], err) == (0, "stop: deny (code 403)", "")
    code, lines, err = explain("--no-paste-file")
    assert (code, lines[0], err) == (0, "stop: allow", "")


def test_a_paste_file_of_another_name(paste, explain, denied, tmp_path):
    paste(section(mode="audit"))
    other = paste(section(policy_file=denied), name="other.ini")
    assert explain("--paste-file", other)[1][0] == "stop: deny (code 403)"
    assert explain()[1][0] == "stop: allow"
    (tmp_path / "nova.conf").write_text("[wsgi]\napi_paste_config=other.ini")
    assert explain()[1][0] == "stop: deny (code 403)"


def test_without_a_paste_file_rules_can_be_tried(paste, explain):
    code, lines, err = explain()
    assert (code, lines[0]) == (0, "stop: allow")
    assert "nova.conf count alone: api-paste.ini is not found" in err
    path = paste(section(), v21="", v2="")
    code, lines, err = explain()
    assert (code, lines[0]) == (0, "stop: allow")
    assert f"{path}: no pipeline has the filter" in err
    code, lines, err = explain("--paste-file", path)
    assert (code, lines) == (2, [])
    assert f"{path}: no pipeline has the filter" in err


def test_a_paste_file_that_is_not_usable(paste, explain, tmp_path):
    code, _, err = explain("--paste-file", tmp_path / "gone.ini")
    assert code == 2
    assert "gone.ini" in err
    paste(section(policy_file="%(nowhere)s"))
    assert explain()[0] == 2
    paste(section("one") + section("two", mode="warn"), v2="two")
    code, _, err = explain()
    assert code == 2
    assert "differ in `mode`" in err


def test_both_options_at_once(run):
    with pytest.raises(SystemExit) as raised:
        run("--paste-file", "x", "--no-paste-file", "explain", "stop")
    assert raised.value.code == 2


@pytest.mark.parametrize("found", [True, False])
def test_where_nova_is_read_it_is_said_too(paste, capsys, tmp_path, found):
    """A timer may run where no API does; what it goes by must be known."""
    if found:
        paste(section(), v21="", v2="")
    options = argparse.Namespace(
        config_file=[str(tmp_path / "nova.conf")],
        config_dir=[],
        no_paste_file=False,
        paste_file=None,
    )
    conf = config.load(options)
    found_settings = config.settings(options, conf, Settings().with_overrides)
    assert found_settings == Settings()
    assert "nova.conf count alone" in capsys.readouterr().err
    options.no_paste_file = True
    config.settings(options, conf, Settings().with_overrides)
    assert capsys.readouterr().err == ""


# -- the check ----------------------------------------------------------------


def checked(capsys, *options):
    """Return what ``upgrade check`` finds of the options."""
    status.main([*map(str, options), "upgrade", "check", "--json"])
    found = json.loads(capsys.readouterr().out)["checks"]
    return {one["check"]: one["details"] or "" for one in found}


def test_the_check_looks_at_both_pipelines(paste, tmp_path: Path, capsys):
    conf = ("--config-file", tmp_path / "nova.conf")
    paste(section("one") + section("two", mode="warn"), v2="two")
    found = checked(capsys, *conf)
    assert "differ in `mode`" in found["Configuration"]
    other = paste(section(), name="other.ini")
    found = checked(capsys, *conf, "--paste-file", other)
    assert found["Configuration"] == ""
    assert found["Filter in api-paste.ini"] == ""
