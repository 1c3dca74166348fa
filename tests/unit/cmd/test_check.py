# SPDX-License-Identifier: Apache-2.0
"""`state-policy check`: exit codes and lines."""

import os

import pytest

from state_policy.cmd import app


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def test_invalid(write, capsys):
    one, two = write('"class:ayn": "@"'), write('\n"a": "rule:b"', "b.yaml")
    assert app.main(["check", one, two]) == 3
    assert capsys.readouterr().out.splitlines() == [
        f"{one}:1: unknown rule name `class:ayn` (did you mean `class:any`?)",
        f"{two}:2: `rule:b` refers to no rule",
    ]


def test_several_files_are_one_set(write):
    one = write('"class:any": "rule:mine"')
    two = write('"mine": "not server.locked:true"', "b.yaml")
    assert app.main(["check", one]) == 3
    assert app.main(["check", two, one]) in (0, 1)


def test_a_directory(write, tmp_path, capsys):
    write('"class:ayn": "@"')
    assert app.main(["check", str(tmp_path)]) == 3
    assert f"{tmp_path}/a.yaml:1: " in capsys.readouterr().out


def test_a_directory_with_nothing_in_it(tmp_path, capsys):
    path = tmp_path / "rules.yaml"
    path.mkdir()
    assert app.main(["check", str(path)]) == 3
    out = capsys.readouterr().out
    assert out == f"{path}:1: is a directory, not a file\n"


def test_absent(tmp_path, capsys):
    assert app.main(["check", str(tmp_path / "no.yaml")]) == 3
    out = capsys.readouterr().out
    assert out.startswith(f"{tmp_path}/no.yaml:1: cannot be read: no such")


@pytest.mark.parametrize("name", ["n" * 300 + ".yaml", "loop/a.yaml"])
def test_what_cannot_be_looked_at(tmp_path, capsys, name):
    (tmp_path / "loop").symlink_to("loop")
    assert app.main(["check", str(tmp_path / name)]) == 3
    out = capsys.readouterr().out
    assert out.startswith(f"{tmp_path / name}:1: cannot be read: ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be another user")
def test_a_directory_that_must_not_be_entered(tmp_path, write, capsys):
    shut = tmp_path / "shut"
    shut.mkdir(mode=0o700)
    (shut / "a.yaml").write_text("")
    # What is imported on the way may be closed to the other user, too.
    assert app.main(["check", write("")]) == 0
    capsys.readouterr()
    os.seteuid(65534)
    try:
        code = app.main(["check", f"{shut}/a.yaml"])
    finally:
        os.seteuid(0)
    out = capsys.readouterr().out
    assert out == f"{shut}/a.yaml:1: cannot be read: permission denied\n"
    assert code == 3


def test_the_file_that_is_named_is_the_one_that_is_read(
    tmp_path, write, capsys, monkeypatch
):
    (tmp_path / "rel/v2/sub").mkdir(parents=True)
    (tmp_path / "cur").symlink_to("rel/v2/sub")
    write('"class:ayn": "@"', "rel/v2/rules.yaml")
    write('"class:any": "@"', "rules.yaml")
    monkeypatch.chdir(tmp_path)
    assert app.main(["check", "cur/../rules.yaml"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("cur/../rules.yaml:1: unknown rule name `class:ayn`")


def test_no_name(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert app.main(["check", ""]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "a file without a name\n")


def test_runtime(write, capsys):
    path = write('"server:stop:brake": "project.deletes:10m:>50"\n')
    assert app.main(["check", "--runtime", path]) == 1
    out = capsys.readouterr().out
    assert f"{path}:1: " in out
    assert "`server:stop:brake`" in out


def test_usage():
    with pytest.raises(SystemExit) as caught:
        app.main(["check"])
    assert caught.value.code == 2
