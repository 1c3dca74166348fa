# SPDX-License-Identifier: Apache-2.0
"""`state-policy check`: exit codes and lines."""

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
