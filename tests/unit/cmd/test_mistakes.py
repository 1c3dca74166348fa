# SPDX-License-Identifier: Apache-2.0
"""Fifteen mistakes of rule authors: one line each, where and what to do."""

import pytest

#: What was written, the line it is on, and words that the one line has.
MISTAKES = {
    "typo in a kind": (
        '"server:stop": "server.vm_sate:active"',
        1,
        ("unknown kind `server.vm_sate`", "did you mean `server.vm_state`?"),
    ),
    "typo in a state": (
        '# a comment\n"server:stop": "server.vm_state:bulding"',
        2,
        ("unknown vm_state `bulding`", "did you mean `building`?"),
    ),
    "typo in a rule name": (
        '"server:stop": "rule:bussy"',
        1,
        ("`rule:bussy` refers to no rule", "did you mean `busy`?"),
    ),
    "wrong unit": (
        '"server:stop": "server.state_age:>=10min"',
        1,
        ("`10min`", "s, m, h, d"),
    ),
    "missing quote": (
        '"server:stop": "server.vm_state:active\n"server:start": "@"',
        1,
        ("a quote that opens here", "line 2", "a quote is missing"),
    ),
    "tab": (
        '"server:stop":\n\t"@"',
        2,
        ("tab",),
    ),
    "duplicate key": (
        '"server:stop": "@"\n"server:start": "@"\n"server:stop": "!"',
        3,
        ("`server:stop`", "line 1"),
    ),
    "empty value": (
        '"server:stop":',
        1,
        ("is empty", 'write "@" for always and "!" for never'),
    ),
    "cycle": (
        '"a": "rule:b"\n"b": "not rule:a"\n"server:stop": "rule:a"',
        1,
        ("circle", "`a`", "`b`"),
    ),
    "wrong suffix": (
        '"server:stop:quarantine": "rule:busy"',
        1,
        ("only delete and force_delete",),
    ),
    "contradiction": (
        '"server:stop": "server.vm_state:active and server.vm_state:error"',
        1,
        ("SP001", "can never be true", "exclude each other"),
    ),
    "always true": (
        '"server:stop": "server.locked:true or server.locked:false"',
        1,
        ("SP002", "is true whatever the state is", 'write "@"'),
    ),
    "unreachable wait": (
        '"server:stop:wait": "rule:snapshotting"',
        1,
        ("SP009", "`server:stop` does not refuse", "refuse the operation in"),
    ),
    "unprotected twin": (
        '"server:delete": "not (server.az:vault and server.age:<90d)"',
        1,
        ("SP006", "refuses delete but not rebuild", "class:destroy"),
    ),
    "unbounded protection": (
        '"class:destroy": "not server.az:vault"',
        1,
        ("SP010", "protects without a bound", "add a bound"),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_line_says_where_and_what(file, run, name):
    text, line, words = MISTAKES[name]
    path = file(text)
    code, lines, _ = run("check", path)
    loads = words and words[0].startswith("SP")
    assert code == (1 if loads else 3)
    said = [found for found in lines if found.startswith(f"{path}:")]
    assert len(said) == 1, lines
    assert said[0].startswith(f"{path}:{line}: ")
    for word in words:
        assert word in said[0]


def test_there_are_fifteen():
    assert len(MISTAKES) == 15
