# SPDX-License-Identifier: Apache-2.0
"""Files that configuration management swaps, and that go out of reach."""

import errno
import os
import shutil

import pytest

from state_policy.rules.store import Store

STOP = '"server:stop": "rule:busy"\n'
START = '"server:start": "rule:busy"\n'


class Clock:
    """Stands still unless told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def watch():
    """Return a function that gives a function: names of rules, in force."""

    def watch(policy_file, policy_dirs=()):
        clock = Clock()
        store = Store(policy_file, policy_dirs, clock=clock)

        def look():
            for _ in range(3):
                clock.now += 2
                store.current()
            return set(store.current().sources), store

        return look

    return watch


@pytest.fixture
def mounted(tmp_path):
    """Return a directory as Kubernetes mounts one: a link swaps it whole."""
    folder = tmp_path / "mounted"
    version(folder / "..1", STOP)
    (folder / "..data").symlink_to("..1")
    (folder / "rules.yaml").symlink_to("..data/rules.yaml")
    return folder


def version(folder, text):
    folder.mkdir(parents=True)
    (folder / "rules.yaml").write_text(text)


@pytest.mark.parametrize("as_file", [True, False])
def test_a_link_is_swapped(watch, mounted, as_file):
    where = (mounted / "rules.yaml",) if as_file else (None, [mounted])
    look = watch(*where)
    version(mounted / "..2", START)
    (mounted / "..new").symlink_to("..2")
    (mounted / "..new").rename(mounted / "..data")
    shutil.rmtree(mounted / "..1")
    names, store = look()
    assert names == {"server:start"}
    assert (store.reloads, store.refusals) == (1, 0)


@pytest.mark.parametrize("as_file", [True, False])
def test_a_link_to_nothing_is_a_fault(watch, mounted, as_file):
    where = (mounted / "rules.yaml",) if as_file else (None, [mounted])
    look = watch(*where)
    (mounted / "..data").unlink()
    names, store = look()
    assert names == {"server:stop"}
    assert store.refusals == 1
    assert "no such file" in str(store.faults[0])


def test_a_directory_is_replaced(watch, tmp_path):
    version(tmp_path / "d", STOP)
    look = watch(None, [tmp_path / "d"])
    version(tmp_path / "new", START)
    (tmp_path / "d").rename(tmp_path / "old")
    (tmp_path / "new").rename(tmp_path / "d")
    names, store = look()
    assert names == {"server:start"}
    assert store.faults == ()


@pytest.mark.parametrize("empty", [True, False])
def test_a_directory_that_is_lost_is_a_fault(watch, tmp_path, empty):
    version(tmp_path / "d", STOP)
    look = watch(None, [tmp_path / "d"])
    shutil.rmtree(tmp_path / "d")
    if empty:
        (tmp_path / "d").mkdir()
    names, store = look()
    assert names == {"server:stop"}
    assert "was deleted with the rule `server:stop`" in str(store.faults[0])


def test_a_directory_in_the_place_of_the_file_is_a_fault(watch, tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(STOP)
    look = watch(path)
    path.unlink()
    path.mkdir()
    names, store = look()
    assert names == {"server:stop"}
    assert "is a directory" in str(store.faults[0])


def test_a_file_that_must_not_be_read_any_more_is_a_fault(
    watch, tmp_path, monkeypatch
):
    path = tmp_path / "rules.yaml"
    path.write_text(STOP)
    look = watch(path)
    path.write_text(START)
    path.chmod(0)
    if os.geteuid() == 0:
        # Root reads anything: the system's refusal is put in its place.
        def refuse(*args, **kwargs):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr("state_policy.rules.files.os.open", refuse)
    names, store = look()
    assert names == {"server:stop"}
    assert "permission denied" in str(store.faults[0])
    monkeypatch.undo()
    path.chmod(0o600)
    names, store = look()
    assert names == {"server:start"}
    assert store.faults == ()
