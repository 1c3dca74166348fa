# SPDX-License-Identifier: Apache-2.0
"""The samples in etc/ are what the tools make of the options and rules."""

from __future__ import annotations

import configparser
import subprocess
import sys
from pathlib import Path

import pytest

from state_policy.conf import list_opts
from state_policy.rules import load

ROOT = Path(__file__).parents[3]
ETC = ROOT / "etc" / "state_policy"


@pytest.mark.parametrize(
    ("tool", "config", "sample"),
    [
        (
            "oslo-config-generator",
            "config-generator.conf",
            "state_policy.conf.sample",
        ),
        (
            "oslopolicy-sample-generator",
            "policy-generator.conf",
            "state_policy.yaml.sample",
        ),
    ],
)
def test_generated_sample_is_up_to_date(tmp_path, tool, config, sample):
    made = tmp_path / sample
    subprocess.run(
        [
            str(Path(sys.executable).parent / tool),
            "--config-file",
            str(ETC / config),
            "--output-file",
            str(made),
        ],
        check=True,
        cwd=tmp_path,
        capture_output=True,
    )
    assert made.read_text() == (ETC / sample).read_text(), "run `make samples`"


def test_sample_names_every_option():
    text = (ETC / "state_policy.conf.sample").read_text()
    for group, options in list_opts():
        assert f"[{group.name}]" in text
        for option in options:
            assert f"\n#{option.name} =" in text


def test_sample_rules_load_and_state_the_defaults(tmp_path):
    """With every line of the sample in force nothing changes."""
    lines = (ETC / "state_policy.yaml.sample").read_text().splitlines()
    stated = [line[1:] for line in lines if line.startswith('#"')]
    assert len(stated) > 400
    rules = tmp_path / "rules.yaml"
    rules.write_text("\n".join(stated) + "\n")
    found = load([rules])
    plain = load([])
    for name in plain.rules:
        assert found.rules[name].expression == plain.rules[name].expression


def test_paste_sample_has_the_filter_before_the_application_twice():
    parser = configparser.ConfigParser()
    parser.read(ETC / "api-paste.ini.sample")
    ends = [
        parser[name]["keystone"].split()[-2:]
        for name in parser.sections()
        if name.startswith("composite:")
    ]
    assert ends == [["state_policy", "osapi_compute_app_v21"]] * 2
    section = parser["filter:state_policy"]
    assert section["use"] == "egg:state-policy#state_policy"
