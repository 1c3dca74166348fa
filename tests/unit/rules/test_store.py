# SPDX-License-Identifier: Apache-2.0
"""The store: changed files are taken whole, or the last good set stays."""

import logging
import os
import threading
import time

import pytest

from state_policy.rules import RulesError, Store, load

OPEN, SHUT = '"class:any": "@"\n', '"class:any": "!"\n'
BROKEN = '"class:ayn": "!"\n'


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "rules.yaml"
    found.write_text(SHUT)
    return found


def look(store, times=2):
    """Let the store look at its files, as often as it takes to take them."""
    for _ in range(times):
        rules = store.current()
    return rules


def shut(rules) -> bool:
    return rules.operations["stop"].may.constant is False


def test_a_changed_file_is_taken(path):
    store = Store(path, interval=0)
    assert shut(store.current())
    path.write_text(OPEN)
    assert not shut(look(store))
    assert (store.reloads, store.refusals, store.faults) == (1, 0, ())


def test_the_files_are_looked_at_once_in_an_interval(path):
    clock = Clock()
    store = Store(path, interval=1.0, clock=clock)
    path.write_text(OPEN)
    assert shut(look(store, 100))
    clock.now = 1.0
    assert shut(look(store, 100))
    clock.now = 2.0
    assert not shut(look(store, 1))


def test_a_file_being_written_is_not_taken(path):
    store = Store(path, interval=0)
    # Cut off, it is empty: everything would be allowed.
    path.write_text("")
    assert shut(look(store, 1))
    path.write_text("# still the same\n" + SHUT)
    assert shut(look(store, 5))
    assert store.faults == ()


def test_the_first_look_for_long_takes_what_has_long_changed(path):
    """A worker without requests looks at nothing; its next is no guess."""
    clock = Clock()
    later = Store(
        path, interval=1.0, clock=clock, wall=lambda: time.time() + 60
    )
    put_back = Store(
        path, interval=1.0, clock=clock, wall=lambda: time.time() - 60
    )
    path.write_text(OPEN)
    clock.now = 100.0
    assert not shut(look(later, 1))
    assert shut(look(put_back, 1))
    clock.now = 101.0
    assert not shut(look(put_back, 1))


def test_an_older_time_is_taken(path):
    store = Store(path, interval=0)
    path.write_text(OPEN)
    os.utime(path, (1, 1))
    assert not shut(look(store))
    other = path.with_suffix(".old")
    other.write_text(SHUT)
    os.utime(other, (0, 0))
    other.replace(path)
    assert shut(look(store))


def test_same_size_and_time_is_taken(path):
    store = Store(path, interval=0)
    found = path.stat()
    path.write_text(OPEN)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert path.stat().st_mtime_ns == found.st_mtime_ns
    assert path.stat().st_size == found.st_size
    assert not shut(look(store))


def test_a_broken_file_leaves_the_last_good_set(path, caplog):
    store = Store(path, interval=0)
    good = store.current()
    path.write_text(BROKEN)
    with caplog.at_level(logging.ERROR):
        assert look(store, 10) is good
        path.write_text("\n" + BROKEN)
        look(store, 10)
        path.write_text("\n" + BROKEN + "# the same fault")
        look(store, 10)
    assert store.refusals == 2
    assert len(caplog.records) == 2
    assert f"{path}:1: unknown rule name `class:ayn`" in caplog.text
    assert f"{path}:2: unknown rule name `class:ayn`" in caplog.text
    path.write_text(OPEN)
    assert not shut(look(store))
    assert store.faults == ()


def test_the_log_counts_refusals_and_tells_when_they_end(path, caplog):
    store = Store(path, interval=0)
    caplog.set_level(logging.INFO)
    many = "\n".join(f'"m{n}": "rule:gone"' for n in range(60))
    for content in (BROKEN, many, SHUT):
        path.write_text(content)
        look(store)
    first, second, last = (record.getMessage() for record in caplog.records)
    revision = store.current().revision
    assert first == (
        f"Changed rules are refused (1 times since the start), {revision}"
        f" stays in force: {path}:1: unknown rule name `class:ayn` (did you"
        " mean `class:any`?)"
    )
    assert "refused (2 times since the start)" in second
    assert second.endswith(
        f"{path}:50: `rule:gone` refers to no rule; and 10 more"
    )
    # The same set as before: nothing else would tell that all is well.
    assert last == (
        "The rules load again; changes were refused 2 times since the start"
    )


def test_a_fault_that_comes_back_is_told_again(path, caplog):
    store = Store(path, interval=0)
    for content in (BROKEN, OPEN, BROKEN):
        path.write_text(content)
        look(store)
    assert store.refusals == 2


def test_a_deleted_file_is_a_fault(path):
    store = Store(path, interval=0)
    path.unlink()
    assert shut(look(store, 10))
    assert store.refusals == 1
    (fault,) = store.faults
    assert str(fault).startswith(f"{path}: was deleted with the rule")
    path.write_text(OPEN)
    assert not shut(look(store))


def test_a_deleted_file_of_a_directory_is_a_fault(tmp_path, path):
    more = tmp_path / "more"
    more.mkdir()
    (more / "1.yaml").write_text('"server:start": "!"')
    store = Store(path, [more], interval=0)
    (more / "1.yaml").unlink()
    assert not look(store, 5).operations["start"].may.constant
    assert store.refusals == 1
    # Who means it empties the file first.
    (more / "1.yaml").write_text("")
    look(store)
    assert (store.faults, store.refusals) == ((), 1)
    (more / "1.yaml").unlink()
    look(store, 5)
    assert (store.faults, store.refusals) == ((), 1)


def test_a_renamed_file_is_no_fault(tmp_path):
    (tmp_path / "1.yaml").write_text(SHUT)
    store = Store(None, [tmp_path], interval=0)
    (tmp_path / "1.yaml").rename(tmp_path / "2.yaml")
    rules = look(store)
    assert rules.sources == {"class:any": f"{tmp_path}/2.yaml:1"}
    assert store.faults == ()


@pytest.fixture
def places(tmp_path):
    """Return two places of a file, the more wanted one first."""
    found = tuple(tmp_path / name / "rules.yaml" for name in "ab")
    for place in found:
        place.parent.mkdir()
    return found


def waiting(places):
    """Return a store of a file that may be in each of these places."""
    return Store(places[0], places={places[0]: places}, interval=0)


def test_a_file_that_comes_to_be_elsewhere_is_taken(tmp_path, places, caplog):
    first, second = places
    more = [tmp_path / name / "rules.d" for name in "ab"]
    with caplog.at_level(logging.INFO):
        store = Store(
            first,
            more[:1],
            places={first: (first, second), more[0]: more},
            interval=0,
        )
    assert "everything is allowed" in caplog.text
    for place in (first, second, *more):
        assert str(place) in caplog.text
    assert not shut(look(store))
    more[1].mkdir(parents=True)
    second.write_text(SHUT)
    (more[1] / "x").write_text('"server:stop": "role:admin"\n')
    rules = look(store)
    assert set(rules.sources.values()) == {f"{second}:1", f"{more[1]}/x:1"}


@pytest.mark.parametrize("later", [True, False])
def test_a_file_in_a_more_wanted_place_is_told(places, caplog, later):
    """What is in force is not lost by it; who starts later reads it."""
    first, second = places
    if later:
        store = waiting(places)
        second.write_text(SHUT)
    else:
        second.write_text(SHUT)
        store = Store(second, places={second: places}, interval=0)
    rules = look(store)
    assert shut(rules)
    first.write_text(OPEN)
    assert look(store, 1) is rules
    assert caplog.records == []
    assert look(store, 9) is rules
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith(
        f"The rules of {second} stay in force here, and {first} is there too"
    )
    # It is followed for as long as it is there, then the other one counts.
    second.write_text("# the same\n" + SHUT)
    assert look(store).sources == {"class:any": f"{second}:2"}
    second.unlink()
    assert not shut(look(store))
    # Another time is another fault.
    first.unlink()
    second.write_text(SHUT)
    look(store)
    first.write_text(OPEN)
    look(store)
    assert len(caplog.records) == 2


def test_a_place_binds_only_with_rules_in_force(places, caplog):
    """Refused where they were first, they are moved to where they belong."""
    first, second = places
    store = waiting(places)
    second.write_text(BROKEN)
    look(store)
    assert store.refusals == 1
    caplog.clear()
    with caplog.at_level(logging.INFO):
        second.unlink()
        look(store)
        assert store.faults == ()
        first.write_text(SHUT)
        assert shut(look(store))
    waits, taken = (record.getMessage() for record in caplog.records)
    assert waits.startswith("There are no rules, everything is allowed")
    assert "replaces" in taken
    # So it is where the file was there, with no rules in it.
    first.write_text("")
    look(store)
    first.rename(second)
    look(store)
    first.write_text(SHUT)
    assert shut(look(store))


def test_a_file_that_moves_is_followed(places, caplog):
    first, second = places
    second.write_text(SHUT)
    store = waiting(places)
    assert shut(look(store))
    second.rename(first)
    assert look(store).sources == {"class:any": f"{first}:1"}
    first.write_text(OPEN)
    assert not shut(look(store))
    first.rename(second)
    assert look(store).sources == {"class:any": f"{second}:1"}
    assert caplog.records == []
    second.unlink()
    look(store)
    assert "was deleted with the rule" in str(store.faults[0])


def test_a_new_file_is_taken(tmp_path):
    path = tmp_path / "rules.yaml"
    store = Store(path, interval=0)
    assert not shut(store.current())
    path.write_text(SHUT)
    assert shut(look(store))


def test_faults_at_the_start_are_raised(path):
    path.write_text(BROKEN)
    with pytest.raises(RulesError, match="class:ayn"):
        Store(path)


def test_an_error_of_ours_does_not_reach_the_request(path):
    calls = []

    def loader(files):
        calls.append(files)
        if len(calls) > 1:
            raise KeyError("ours")
        return load(files)

    store = Store(path, interval=0, loader=loader)
    path.write_text(OPEN)
    assert shut(look(store, 5))
    assert store.refusals == 1
    assert len(calls) == 2


def test_files_that_change_while_they_are_read_are_read_again(path):
    contents = [OPEN, SHUT + "# later\n"]

    def loader(files):
        rules = load(files)
        if contents and started:
            path.write_text(contents.pop(0))
        return rules

    started = False
    store = Store(path, interval=0, loader=loader)
    started = True
    path.write_text("# changed\n" + OPEN)
    rules = [look(store, 1) for _ in range(12)]
    # What was read while the file changed under it was never in force.
    assert not contents
    assert shut(rules[-1])
    assert all(map(shut, rules))


def test_a_slow_reload_holds_nobody(path):
    reading, go_on = threading.Event(), threading.Event()

    def loader(files):
        if started:
            reading.set()
            assert go_on.wait(10)
        return load(files)

    started = False
    store = Store(path, interval=0, loader=loader)
    started = True
    path.write_text(OPEN)
    look(store, 1)
    thread = threading.Thread(target=store.current)
    thread.start()
    assert reading.wait(10)
    assert shut(store.current())
    go_on.set()
    thread.join(10)
    assert not shut(store.current())
