# SPDX-License-Identifier: Apache-2.0
"""Files that are no policy files, and the order of those that are."""

import os
from pathlib import Path

import pytest

from state_policy.rules import RulesError, Store, load, sources
from state_policy.rules.files import MAX_BYTES


def fault(path) -> str:
    with pytest.raises(RulesError) as caught:
        load([path])
    (found,) = caught.value.faults
    return str(found)


def test_absent(tmp_path):
    path = tmp_path / "no.yaml"
    assert fault(path) == (
        f"{path}:1: cannot be read: no such file or directory"
    )


def test_directory(tmp_path):
    assert fault(tmp_path) == f"{tmp_path}:1: is a directory, not a file"


def test_pipe_does_not_block(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    assert fault(path) == f"{path}:1: is not a regular file"


def test_device():
    assert fault("/dev/zero") == "/dev/zero:1: is not a regular file"


def test_dangling_link(tmp_path):
    path = tmp_path / "link"
    path.symlink_to(tmp_path / "gone")
    assert "cannot be read: no such file" in fault(path)
    # It is somebody's intention, so it is not passed over either.
    assert sources(path) == [path]


def test_unreadable(tmp_path, monkeypatch):
    path = tmp_path / "a.yaml"
    path.write_text("")
    path.chmod(0)
    if os.geteuid() == 0:
        # Root reads anything: the system's refusal is put in its place.
        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("state_policy.rules.files.os.open", refuse)
    assert fault(path) == f"{path}:1: cannot be read: permission denied"


@pytest.mark.parametrize("name", ["loop/a.yaml", "n" * 300, "a\0b"])
def test_what_cannot_be_looked_at_is_not_absent(tmp_path, name):
    # So does a directory that must not be entered; root may enter any.
    (tmp_path / "loop").symlink_to("loop")
    path = tmp_path / name
    assert sources(path) == [path]
    assert sources(None, [path]) == [path]
    assert "cannot be read" in fault(path)
    with pytest.raises(RulesError, match="cannot be read"):
        Store(path)


@pytest.mark.parametrize("name", ["no.yaml", "file/a.yaml"])
def test_what_is_not_there_is_absent(tmp_path, name):
    (tmp_path / "file").write_text("")
    assert sources(tmp_path / name) == []


def test_name_that_no_file_can_have():
    assert "cannot be read" in fault(Path("a\0b"))


def test_too_large(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"# " + b"x" * 10_000_000)
    assert fault(path) == f"{path}:1: is larger than {MAX_BYTES} bytes"


def test_as_large_as_may_be(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_bytes(b"#".ljust(MAX_BYTES, b"x"))
    assert load([path]).sources == {}


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b'"server:stop": "@"\n# caf\xe9', 2, "is not UTF-8 text"),
        ('"server:stop": "@"'.encode("utf-16"), 1, "is not UTF-8 text"),
        (b"\x7fELF\x02\x01\x01\0\0", 1, "control character"),
        (b"\x89PNG\r\n\x1a\n", 1, "is not UTF-8 text"),
        (b'"server:stop": "@"\n\0', 2, "control character 0x00"),
        (b"\x1f\x8b\x08", 1, "is not UTF-8 text"),
    ],
)
def test_binary(tmp_path, data, line, reason):
    path = tmp_path / "a.yaml"
    path.write_bytes(data)
    assert fault(path).startswith(f"{path}:{line}: ")
    assert reason in fault(path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# nothing\n",
        "---\n",
        "{}",
        "\ufeff",
        "---\n...\n",
        "%YAML 1.1\n---\n",
    ],
)
def test_a_file_that_states_nothing_changes_nothing(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    assert load([path]).revision == load().revision


@pytest.mark.parametrize(
    "text",
    [
        '"server:stop": "rule:busy"',
        "server:stop: rule:busy",
        "'server:stop': 'rule:busy'",
        '{"server:stop": "rule:busy"}',
        '\ufeff"server:stop": "rule:busy"\r\n',
        '"server:stop": >-\n  rule:busy\n',
        '? "server:stop"\n: "rule:busy"',
        '--- # rules\n"server:stop":\n  "rule:busy"\n...\n',
    ],
)
def test_every_way_to_write_a_rule(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text)
    rules = load([path])
    assert rules.rules["server:stop"].names == ("server:stop", "busy")
    line = text.count("\n", 0, text.index("server:stop")) + 1
    assert rules.sources == {"server:stop": f"{path}:{line}"}


def test_a_rule_over_several_lines(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        '"server:stop": |\n  not (rule:busy\n  or rule:building)\n'
    )
    (rule,) = (load([path]).rules["server:stop"],)
    assert rule.names == ("server:stop", "busy", "building")


def test_sources(tmp_path):
    for name in ("b.yaml", "a.yaml", ".hidden", "c.conf"):
        (tmp_path / name).write_text("")
    main = tmp_path / "a.yaml"
    found = sources(main, [tmp_path, tmp_path / "none"])
    assert [path.name for path in found] == [
        "a.yaml",
        "a.yaml",
        "b.yaml",
        "c.conf",
    ]
    assert sources(tmp_path / "none") == []
    assert sources(None) == []
    # Read once, stated once.
    main.write_text('"server:stop": "!"')
    assert load(found).sources == {"server:stop": f"{main}:1"}


def test_a_directory_in_a_policy_directory_is_told(tmp_path):
    (tmp_path / "sub").mkdir()
    with pytest.raises(RulesError, match="is a directory, not a file"):
        load(sources(None, [tmp_path]))


@pytest.mark.parametrize("link", [False, True])
def test_a_file_for_a_policy_directory_is_told(tmp_path, link):
    path = tmp_path / "a.yaml"
    path.write_text('"server:stop": "!"')
    if link:
        path = tmp_path / "rules.d"
        path.symlink_to("a.yaml")
    with pytest.raises(RulesError) as caught:
        load(sources(None, [path]))
    assert str(caught.value) == (
        f"{path}:1: is not a directory, and policy_dirs names it"
    )
    with pytest.raises(RulesError, match="is not a directory"):
        Store(None, [path])


def test_a_policy_directory_that_leads_nowhere_is_told(tmp_path):
    path = tmp_path / "rules.d"
    path.symlink_to("gone")
    with pytest.raises(RulesError, match=r"rules\.d:1: cannot be read: no s"):
        load(sources(None, [path]))
    with pytest.raises(RulesError, match="cannot be read"):
        Store(None, [path])
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "a.yaml").write_text('"server:stop": "!"')
    assert list(load(sources(None, [path])).sources) == ["server:stop"]


def test_a_directory_that_becomes_something_else_keeps_its_rules(tmp_path):
    path = tmp_path / "rules.d"
    path.mkdir()
    (path / "a.yaml").write_text('"server:stop": "!"')
    now = [0.0]
    store = Store(None, [path], clock=lambda: now[0])
    path.rename(tmp_path / "old.d")
    path.write_text('"server:stop": "@"')
    for _ in range(3):
        now[0] += 60
        assert list(store.current().sources) == ["server:stop"]
    assert "is not a directory" in store.faults[0].reason
    assert str(store.current().sources["server:stop"]).startswith(f"{path}/a")
