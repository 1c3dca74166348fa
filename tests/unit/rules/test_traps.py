# SPDX-License-Identifier: Apache-2.0
"""What oslo.policy passes over in silence is refused, with line and reason."""

import difflib
import time

import pytest
import yaml

from state_policy.engine.decision import Verdict
from state_policy.engine.evaluate import decide
from state_policy.rules import RulesError, files, load
from state_policy.rules.faults import MAX_COMPARED

ONE = {
    # What is written: the line and what the reason says.
    "unknown kind": (
        '"server:stop": "server.vm_sate:building"',
        1,
        "unknown kind `server.vm_sate` (did you mean `server.vm_state`?)",
    ),
    "kind without its prefix": (
        '"server:stop": "task_state:none"',
        1,
        "(did you mean `server.task_state`?)",
    ),
    "kind in capitals": (
        '"server:stop": "Server.VM_State:building"',
        1,
        "(did you mean `server.vm_state`?)",
    ),
    "unknown state": (
        '"server:stop": "server.vm_state:bulding"',
        1,
        "unknown vm_state `bulding` (did you mean `building`?)",
    ),
    "state of another kind": (
        '"server:stop": "server.vm_state:spawning"',
        1,
        "unknown vm_state `spawning`",
    ),
    "none where there is always a value": (
        '"server:stop": "server.vm_state:none"',
        1,
        "`none`: there always is a vm_state",
    ),
    "unknown operation": (
        '# first\n"server:delte": "@"',
        2,
        "unknown operation (did you mean `delete`?)",
    ),
    "unknown class": (
        '"class:pwer": "@"',
        1,
        "unknown rule name `class:pwer` (did you mean `class:power`?)",
    ),
    "unknown quarantine rule": (
        '"quarantine:purg": "@"',
        1,
        "(did you mean `quarantine:purge`?)",
    ),
    "unknown suffix": (
        '"server:delete:quarntine": "@"',
        1,
        "unknown suffix (did you mean `quarantine`?)",
    ),
    "suffix of a suffix": (
        '"server:delete:wait:wait": "@"',
        1,
        "unknown suffix",
    ),
    "empty suffix": ('"server:delete:": "@"', 1, "unknown suffix: one of"),
    "suffix that the operation lacks": (
        '"server:stop:quarantine": "@"',
        1,
        "only delete and force_delete can be moved to quarantine",
    ),
    "suffix of a class": ('"class:any:wait": "@"', 1, "unknown rule name"),
    "misspelt prefix": (
        '"sever:stop": "@"',
        1,
        "`sever:stop`: no rule refers to it (did you mean `server:stop`?)",
    ),
    "prefix left out": (
        '"delete:quarantine": "@"',
        1,
        "(did you mean `server:delete:quarantine`?)",
    ),
    "operation without prefix": (
        '"delete": "@"',
        1,
        "(did you mean `server:delete`?)",
    ),
    "rule of Nova": (
        '"os_compute_api:servers:delete": "@"',
        1,
        "it belongs in Nova's policy file",
    ),
    "oslo.policy's default rule": ('"default": "!"', 1, "none here"),
    "unknown reference": (
        '"server:stop": "not rule:snapshoting"',
        1,
        "refers to no rule (did you mean `snapshotting`?)",
    ),
    "reference to nothing": (
        '"server:stop": "rule:"',
        1,
        "nothing stands behind the colon",
    ),
    "unknown caller key": (
        '"server:stop": "tenant_id:x"',
        1,
        "unknown kind `tenant_id`",
    ),
    "unknown caller key like one": (
        '"server:stop": "project:x"',
        1,
        "(did you mean `project_id`?)",
    ),
    "caller value that cannot be": (
        '"server:stop": "is_admin:true"',
        1,
        "`true` is neither `True` nor `False`",
    ),
    "comma of a role": (
        '"server:stop": "role:admin,member"',
        1,
        "a comma is not `any of` here: write `role:a or role:b`",
    ),
    "unknown target": (
        '"server:stop": "project_id:%(tenant_id)s"',
        1,
        "`%(tenant_id)s` is not known of a server",
    ),
    "literal on the left": (
        '"server:stop": "\'x\':%(project_id)s"',
        1,
        "unknown kind",
    ),
    "remote check": (
        '"server:stop": "http://policy.example.org/check"',
        1,
        "asking another service is not supported",
    ),
    "parenthesis not closed": (
        '"server:stop": "(rule:busy or rule:building"',
        1,
        "a `(` has no `)`",
    ),
    "parenthesis not opened": (
        '"server:stop": "rule:busy) or rule:building"',
        1,
        "a `)` has no `(`",
    ),
    "operator missing": (
        '"server:stop": "rule:busy rule:building"',
        1,
        "`and` or `or` is missing before `rule:building`",
    ),
    "operator at the start": (
        '"server:stop": "and rule:busy"',
        1,
        "a condition is missing before `and`",
    ),
    "operator at the end": (
        '"server:stop": "rule:busy or"',
        1,
        "a condition is missing behind `or`",
    ),
    "not at the end": (
        '"server:stop": "rule:busy and not"',
        1,
        "a condition is missing behind `not`",
    ),
    "empty parentheses": (
        '"server:stop": "( )"',
        1,
        "a condition is missing before `)`",
    ),
    "operator of another language": (
        '"server:stop": "rule:busy && rule:building"',
        1,
        "`&&` is written `and`",
    ),
    "exclamation mark for not": (
        '"server:stop": "!rule:busy"',
        1,
        "write `not rule:busy`",
    ),
    "no blank behind not": (
        '"server:stop": "not(rule:busy)"',
        1,
        "a blank is missing before `(`",
    ),
    "no blank beside a closed parenthesis": (
        '"server:stop": "(server.tag:a)or server.tag:b"',
        1,
        "`server.tag:a)or`: a blank is missing beside `)`; in a value"
        " parentheses are written %28 and %29",
    ),
    "no blanks between parentheses": (
        '"server:stop": "not ((server.tag:keep)or(server.tag:prod))"',
        1,
        "a blank is missing beside `)`",
    ),
    "no blanks between parentheses of roles": (
        '"server:stop": "(role:admin)or(role:operator)"',
        1,
        "a blank is missing beside `)`",
    ),
    "no blanks between parentheses of rules": (
        '"server:stop": "(rule:busy)and(rule:building)"',
        1,
        "a blank is missing beside `)`",
    ),
    "no blanks behind a target": (
        '"server:stop": "(user_id:%(user_id)s)or(role:admin)"',
        1,
        "a blank is missing beside `)`",
    ),
    "parenthesis inside a value": (
        '"server:stop": "(server.flavor:m1(small) or rule:busy"',
        1,
        "`server.flavor:m1(small`: a blank is missing beside `(`",
    ),
    "target that is not closed": (
        '"server:stop": "project_id:%(project_id"',
        1,
        "is not known of a server: %(project_id)s and",
    ),
    "a word alone": (
        '"server:stop": "building"',
        1,
        "`building` is no condition",
    ),
    "a text in quotes": (
        '"server:stop": "\'building\'"',
        1,
        "a text in quotes is no condition",
    ),
    "empty match": (
        '"server:stop": "server.vm_state:"',
        1,
        "nothing stands behind the colon",
    ),
    "blank behind a colon": (
        '"server:stop": "server.vm_state: building"',
        1,
        "nothing stands behind the colon",
    ),
    "blank behind a comma": (
        '"server:stop": "server.vm_state:error, building"',
        1,
        "no blank may follow a comma",
    ),
    "blank in a value": (
        '"server:stop": "server.flavor:my flavor"',
        1,
        "a blank inside a value is written %20",
    ),
    "blank in a value in quotes": (
        '"server:stop": "server.flavor:\'my flavor\'"',
        1,
        "quotes do not help",
    ),
    "any name of a kind that has one": (
        '"server:stop": "not server.host:any"',
        1,
        "`server.host:any`: for any value write `not server.host:none`; as a"
        " name `any` is written `%61ny`",
    ),
    "any flavor": ('"server:stop": "server.flavor:any"', 1, "%61ny"),
    "none in capitals": (
        '"server:stop": "server.az:None"',
        1,
        "`None` is written `none`, and as a name `%4Eone`",
    ),
    "any in capitals": (
        '"server:stop": "server.tag:ANY"',
        1,
        "`ANY` is written `any`, and as a name `%41NY`",
    ),
    "pattern": (
        '"server:stop": "server.flavor:m1.*"',
        1,
        "a value is compared as it is, without patterns and signs; a `*` of"
        " its own is written %2A",
    ),
    "not inside a value": ('"server:stop": "server.az:!nova"', 1, "%21"),
    "or inside a value": ('"server:stop": "server.tag:a|b"', 1, "%7C"),
    "name of an image": (
        '"server:stop": "server.image:cirros"',
        1,
        "`server.image:cirros`: `cirros` is no id, perhaps a name: one looks"
        " like 155d900f-",
    ),
    "image in capitals": (
        '"server:stop": "server.image:155D900F-4E14-4E4C-A73D-069CBF4541E6"',
        1,
        "`155D900F-4E14-4E4C-A73D-069CBF4541E6` is written"
        " 155d900f-4e14-4e4c-a73d-069cbf4541e6",
    ),
    "volume without dashes": (
        '"server:stop": "server.volumes:155d900f4e144e4ca73d069cbf4541e6"',
        1,
        "`155d900f4e144e4ca73d069cbf4541e6` is written"
        " 155d900f-4e14-4e4c-a73d-069cbf4541e6",
    ),
    "name of a volume": (
        '"server:stop": "server.volumes:root"',
        1,
        "`root` is no id, perhaps a name",
    ),
    "name of a project": (
        '"server:stop": "project_id:admin"',
        1,
        "`admin` is no id of a project, perhaps a name",
    ),
    "no project in other letters": (
        '"server:stop": "service_project_id:none"',
        1,
        "`none` is no id of a project",
    ),
    "user that is compared with a project": (
        '"server:stop": "user_id:%(project_id)s"',
        1,
        "`user_id` never equals %(project_id)s: project_id does",
    ),
    "domain that is compared with a project": (
        '"server:stop": "domain_id:%(project_id)s"',
        1,
        "`domain_id` never equals %(project_id)s",
    ),
    "any role": (
        '"server:stop": "role:*"',
        1,
        "a value is compared as it is, without patterns and signs",
    ),
    "metadata that is compared": (
        '"server:stop": "server.metadata:env!=test"',
        1,
        "`env!=test`: no key of metadata is `env!`",
    ),
    "metadata that is counted": (
        '"server:stop": "server.metadata:a>=5"',
        1,
        "no key of metadata is `a>`",
    ),
    "metadata with two equals signs": (
        '"server:stop": "server.metadata:a==5"',
        1,
        "a `=` of its own is written %3D",
    ),
    "slash in a tag": (
        '"server:stop": "server.tag:a/b"',
        1,
        "`a/b` is no tag: Nova's have neither comma nor slash",
    ),
    "long tag": (
        f'"server:stop": "server.tag:{"t" * 61}"',
        1,
        "is longer than the 60 characters of a tag",
    ),
    "host in a zone": (
        '"server:stop": "server.az:nova:compute1"',
        1,
        "names a host too: an availability zone has no colon",
    ),
    "percent sign": (
        '"server:stop": "server.flavor:100%"',
        1,
        "is written %25",
    ),
    "bad unit": (
        '"server:stop": "server.age:>10min"',
        1,
        "`10min` is no span of time",
    ),
    "unknown unit": (
        '"server:stop": "server.age:>10w"',
        1,
        "unknown unit in `10w`: one of s, m, h, d comes last",
    ),
    "unit in capitals": (
        '"server:stop": "server.age:>10M"',
        1,
        "unknown unit in `10M`",
    ),
    "unit left out": (
        '"server:stop": "server.age:>10"',
        1,
        "`10` lacks a unit: one of s, m, h, d, as in `10m`",
    ),
    "comparison left out": (
        '"server:stop": "server.age:10m"',
        1,
        "`10m` lacks a comparison: one of >= > <= < comes first",
    ),
    "comparison that is none": (
        '"server:stop": "server.age:==10m"',
        1,
        "comparisons are >= > <= <",
    ),
    "unit where there is none": (
        '"server:stop": "cloud.stuck:>10m"',
        1,
        "`10m` is no whole number",
    ),
    "window left out": (
        '"server:stop": "project.deletes:>50"',
        1,
        "lacks a window or a comparison, as in `10m:>50`",
    ),
    "flag in capitals": (
        '"server:stop": "server.locked:True"',
        1,
        "unknown value `True` (did you mean `true`?)",
    ),
    "yes for true": (
        '"server:stop": "server.locked:yes"',
        1,
        "unknown value `yes`: one of true, false",
    ),
    "group stated anew": (
        '"building": "server.vm_state:building,error"',
        1,
        "is predefined as `server.vm_state:building`; choose another name",
    ),
    "caller in a rule of the quarantine": (
        '"quarantine:purge": "role:admin"',
        1,
        "rules of the quarantine have no caller",
    ),
    "caller behind a rule of the quarantine": (
        '"quarantine:purge": "rule:mine"\n"mine": "role:admin"',
        2,
        "rules of the quarantine have no caller",
    ),
    "quarantine's fact in a rule of a request": (
        '"class:any": "not quarantine.age:>1h"',
        1,
        "is known to `quarantine:purge` and `quarantine:release` alone",
    ),
    "empty value": (
        '"server:stop":',
        1,
        'is empty; write "@" for always and "!" for never',
    ),
    "empty text": ('"server:stop": ""', 1, 'write "@" or "!"'),
    "blank text": ('"server:stop": "  "', 1, 'write "@" or "!"'),
    "null": ('"server:stop": null', 1, "is empty"),
    "unquoted exclamation mark": (
        '"server:stop": !',
        1,
        'starts with an unquoted `!`, a tag to YAML; write "!"',
    ),
    "unquoted exclamation mark and a rule": (
        '"server:stop": !rule:busy',
        1,
        "starts with an unquoted `!`",
    ),
    "unquoted at sign": ('"server:stop": @', 1, 'quote the rule, as in "@"'),
    "empty list": ('"server:stop": []', 1, "is a list"),
    "list": (
        '"server:stop":\n- "rule:busy"\n- "rule:building"',
        1,
        "is a list; a rule is one text with `and` and `or`",
    ),
    "mapping": ('"server:stop": {a: b}', 1, "is a mapping; quote the text"),
    "rule that YAML takes for a mapping": (
        "server:stop:\n  server.vm_state: building",
        1,
        "is a mapping; quote the text",
    ),
    "number": ('"server:stop": 5', 1, "is a number to YAML"),
    "decimal": ('"server:stop": 1.5', 1, "is a number to YAML"),
    "boolean": ('"server:stop": true', 1, "is a boolean to YAML; quote it"),
    "yes": ('"server:stop": yes', 1, "is a boolean to YAML; quote it"),
    "date": ('"server:stop": 2026-12-01', 1, "is a date to YAML"),
    "key that is a boolean": (
        'on: "@"',
        1,
        "the rule name `on` is a boolean to YAML; quote it",
    ),
    "key that is a number": ('5: "@"', 1, "is a number to YAML"),
    "key that is empty": (': "@"', 1, "is no YAML"),
    "key that is a list": ('? [a]\n: "@"', 1, "the rule name a key is a list"),
    "key that merges": ('<<: {"a": "@"}', 1, "quote it"),
    "blank in a name": (
        '"my rule": "@"',
        1,
        "`my rule`: a rule name is one word",
    ),
    "name that is an operator": ('"not": "@"', 1, "a rule name is one word"),
    "name that none can refer to": (
        '"mine)": "@"',
        1,
        "no parenthesis, quote or % in a rule name",
    ),
    "empty name": ('"": "@"', 1, "a rule name is one word"),
    "duplicate key": (
        '"server:stop": "@"\n"server:start": "@"\n"server:stop": "!"',
        3,
        "`server:stop` is stated twice, first in line 1; keep one",
    ),
    "duplicate key in other quotes": (
        'server:stop: "@"\n\'server:stop\': "@"',
        2,
        "is stated twice",
    ),
    "cycle": (
        '"a": "rule:b"\n"b": "not rule:a"\n"server:stop": "rule:a"',
        1,
        "the rules go in a circle: `a` -> `b` -> `a`",
    ),
    "cycle of one": ('"a": "@ or rule:a"', 1, "go in a circle: `a` -> `a`"),
    "cycle through a default": (
        '"class:any": "rule:server:stop"',
        1,
        "the rules go in a circle",
    ),
    "alias": (
        '"server:stop": &x "rule:busy"\n"server:start": *x',
        2,
        "is a YAML alias",
    ),
    "tag": ('"server:stop": !!str 5', 1, "has a YAML tag"),
    "tab": ('\t"server:stop": "@"', 1, "not with a tab"),
    "quote not closed": (
        '# a\n"server:stop": "rule:busy\n"server:start": "@"',
        2,
        "a quote that opens here is closed in line 3 only: a quote is missing",
    ),
    "quote of the other sort not closed": (
        "'server:stop': 'rule:busy\n'server:start': '@'",
        1,
        "a quote is missing",
    ),
    "quote of a name not closed": (
        '"server:stop": "@"\n"server:start: "@"\n"server:pause": "@"',
        2,
        "a quote is missing",
    ),
    "quote of the first name not closed": (
        '"server:start: "rule:busy"',
        1,
        'a rule is written "name": "text"',
    ),
    "quote of the last rule not closed": (
        '"server:start": "@"\n"server:stop": "@\n\n',
        2,
        "a quote that opens here is never closed",
    ),
    "quote at the end alone": (
        '"server:stop": rule:busy"',
        1,
        "did you mean `busy`?",
    ),
    "no blank behind the first name": (
        '"server:stop":"@"\n"server:start": "@"',
        1,
        "with a blank behind the colon",
    ),
    "no blank behind a name": (
        '"server:stop": "@"\n"server:start":"@"\n"server:pause": "@"',
        2,
        "with a blank behind the colon",
    ),
    "no colon": (
        '"server:stop": "@"\n"server:start" "@"',
        2,
        'a rule is written "name": "text"',
    ),
    "list for a file": (
        '- "server:stop"',
        1,
        "the file is not a mapping of rule names to rules",
    ),
    "text for a file": ("server:stop", 1, "the file is not a mapping"),
    "exclamation mark for a file": ("# all\n!\n", 2, "the file is not a map"),
    "tag for a file": ("!0", 1, "the file is not a mapping"),
    "null for a file": ("null", 1, "the file is not a mapping"),
    "two documents": (
        '"server:stop": "@"\n---\n"server:start": "!"',
        2,
        "starts a second YAML document",
    ),
    "control character": (
        '"server:stop": "@"\n"server:start": "\x07"',
        2,
        "control character 0x07",
    ),
    "half a character": ('"server:stop": "\\ud800"', 1, ""),
    "a character as JSON escapes it": (
        '{\n"server:stop": "server.flavor:\\ud83d\\ude00"}',
        2,
        "",
    ),
    "no escape of YAML's": (
        '# a\n"server:stop": "\\q"',
        2,
        "behind a backslash in double quotes stands an escape of YAML's",
    ),
    "half an escape": ('\n"server:stop": "\\x1"', 2, "stands an escape of"),
    "line that ends as on old computers": (
        '# about stop\r"server:stop": "!"\n',
        1,
        "holds U+000D: a line begins there to YAML, not to you",
    ),
    "next line behind a comment": (
        '#\n# about stop\x85"server:stop": "!"\n',
        2,
        "holds U+0085: a line begins there to YAML",
    ),
    "line separator behind a comment": (
        '# about stop\u2028"server:stop": "!"\n',
        1,
        "holds U+2028: a line begins there to YAML",
    ),
    "paragraph separator behind a comment": (
        '# about stop\u2029"server:stop": "!"\n',
        1,
        "holds U+2029: a line begins there to YAML",
    ),
    "comment that is shown as a rule": (
        '# \u202e"!" :"pots:revres"\n',
        1,
        "holds U+202E: what follows is not shown as it stands",
    ),
    "space of no width in a value": (
        '"server:stop": "server.tag:pro\u200bd"',
        1,
        "the rule holds U+200B, which nobody sees; in a value it is written"
        " %E2%80%8B",
    ),
    "space of no width in a role": (
        '"server:stop": "role:adm\u200bin"',
        1,
        "the rule holds U+200B",
    ),
    "direction written as an escape": (
        '"server:stop": "server.tag:\\u202eprod"',
        1,
        "the rule holds U+202E",
    ),
    "control written as an escape": (
        '"server:stop": "server.tag:\\e[31m"',
        1,
        "the rule holds U+001B, which nobody sees; in a value it is written"
        " %1B",
    ),
    "NUL in a role": ('"server:stop": "role:a\\0"', 1, "holds U+0000"),
    "line separator written as an escape": (
        '"server:stop": "@\\Lor rule:busy"',
        1,
        "holds U+2028",
    ),
    "control in a name": (
        '"mine\\a": "!"',
        1,
        "`mine?`: U+0007 in a rule name is seen by nobody",
    ),
    "space of no width in a name": (
        '"server\u200b:stop": "!"',
        1,
        "U+200B in a rule name is seen by nobody",
    ),
    "tag of the file": (
        '# a\n!Rules\n"server:stop": "@"',
        2,
        "starts with a YAML tag; delete it",
    ),
    "tag of a set": (
        '!!set\n? "server:stop"\n: "@"',
        1,
        "starts with a YAML tag; delete it",
    ),
    "list in lists": (
        '"server:stop": "@"\n"server:start": ' + "[" * 30 + "]" * 30,
        2,
        "is nested more than 20 levels deep",
    ),
    "NUL written as an escape": (
        '"server:stop": "server.flavor:a\\0"',
        1,
        "",
    ),
    "deep negation": (
        f'"server:stop": "{"not " * 99}rule:busy"',
        1,
        "the rule is nested too deeply",
    ),
    "deep negations and parentheses": (
        f'"server:stop": "{"not not not ( " * 14}rule:busy{" )" * 14}"',
        1,
        "the rule is nested too deeply",
    ),
    "deep parentheses": (
        f'"server:stop": "{"(" * 99}rule:busy{")" * 99}"',
        1,
        "the rule is nested too deeply",
    ),
    "long rule": (
        f'"server:stop": "{" or ".join(["rule:busy"] * 9000)}"',
        1,
        "is longer than",
    ),
}


def faults(tmp_path, *contents):
    paths = []
    for number, content in enumerate(contents):
        path = tmp_path / f"{number}.yaml"
        path.write_text(content, newline="")
        paths.append(path)
    with pytest.raises(RulesError) as caught:
        load(paths)
    return caught.value.faults


@pytest.mark.parametrize("name", ONE)
def test_trap(tmp_path, name):
    content, line, reason = ONE[name]
    found = faults(tmp_path, content)
    path = tmp_path / "0.yaml"
    assert len(found) == 1, [str(fault) for fault in found]
    assert str(found[0]).startswith(f"{path}:{line}: ")
    assert reason in found[0].reason
    assert "\n" not in str(found[0])
    assert not found[0].reason.endswith(".")
    assert not found[0].reason[0].isupper()
    assert len(found[0].reason) < 250


#: Seconds of the processor: what takes a tenth of it, unless something
#: grows faster than the file does.
SOON = 5.0


@pytest.mark.parametrize(
    "content",
    [
        '"server:stop": ' + "[" * 100_000,
        '"server:stop": ' + "{a: " * 40_000,
        "? " * 50_000,
        '"server:stop": ' + "- " * 50_000,
        "\n".join(f'"m{n}": "rule:gone{n}"' for n in range(3000)),
        "\n".join(f'"m{n}": "server.k{n}:a"' for n in range(3000)),
        "\n".join(f'"m{n}": "server.vm_state:a{n}"' for n in range(3000)),
        "\n".join(f'"server:x{n}": "@"' for n in range(3000)),
        "\n".join(f'"stop:x{n}": "@"' for n in range(3000)),
        '"server:stop": "'
        + " or ".join(f"rule:x{n}" for n in range(5000))
        + '"',
    ],
    ids=lambda content: content[:24].replace("\n", " "),
)
def test_a_refusal_takes_no_time(tmp_path, content):
    before = time.process_time()
    faults(tmp_path, content)
    assert time.process_time() - before < SOON


def compared(monkeypatch) -> list[int]:
    """Return a list to which each look for a hint adds its comparisons."""
    counts: list[int] = []
    close = difflib.get_close_matches

    def counted(word, words, *args):
        counts.append(len(words))
        return close(word, words, *args)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    return counts


@pytest.mark.parametrize(
    "line",
    [
        '"my_rule_{0}": "rule:my_rule_{0}x"',
        '"my_rule_{0}": "server.vm_stat:a or server.vm_state:actve"',
        '"server:stp{0}": "@"',
    ],
)
def test_hints_take_no_more_comparisons_the_more_are_wrong(
    tmp_path, monkeypatch, line
):
    counts = compared(monkeypatch)
    content = "\n".join(line.format(n) for n in range(3000))
    found = faults(tmp_path, content)
    assert len(found) >= 3000
    # Some are told all the same.
    assert "did you mean" in found[0].reason
    assert 0 < sum(counts) <= MAX_COMPARED


def test_a_hint_in_a_set_of_more_names_than_are_compared(
    tmp_path, monkeypatch
):
    counts = compared(monkeypatch)
    content = "\n".join(f'"h{n}": "@"' for n in range(MAX_COMPARED))
    (found,) = faults(tmp_path, content + '\n"a": "rule:bussy"')
    assert "(did you mean `busy`?)" in found.reason
    assert sum(counts) == MAX_COMPARED


def test_a_long_word_is_not_compared(tmp_path, monkeypatch):
    counts = compared(monkeypatch)
    faults(tmp_path, f'"a": "rule:{"b" * 5000}"')
    assert not counts


def test_hints_are_given_to_the_next_set(tmp_path):
    content = "\n".join(f'"m{n}": "rule:bussy"' for n in range(200))
    for _ in range(2):
        found = [fault.reason for fault in faults(tmp_path, content)]
        assert "(did you mean `busy`?)" in found[0]
        assert found[-1] == "`rule:bussy` refers to no rule"


def test_what_must_be_seen_may_be_encoded(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "# \u200bno harm in a comment\r\n"
        '"server:stop": "server.tag:%E2%80%8B and\tserver.tag:%1B"\r\n'
    )
    first, second = load([path]).expressions["server:stop"].parts
    assert first.literal.test(frozenset({"\u200b"}))
    assert second.literal.test(frozenset({"\x1b"}))


def test_all_faults_at_once(tmp_path):
    readable = [
        content
        for content, _, reason in ONE.values()
        if content.count("\n") == 0
        and content.startswith('"server:stop": "')
        and reason
    ]
    content = "\n".join(
        line.replace("server:stop", f"mine{number}", 1)
        for number, line in enumerate(readable)
    )
    found = faults(tmp_path, content, '"class:pwer": "!"\n"b": "rule:c"')
    where = [(fault.file, fault.line) for fault in found]
    first, second = (str(tmp_path / name) for name in ("0.yaml", "1.yaml"))
    assert len(readable) > 30
    # Each line of the first file has its fault, in order; then the second's.
    wanted = [(first, number + 1) for number in range(len(readable))]
    assert [place for place in where if place[0] == first] == wanted
    assert where[len(wanted) :] == [(second, 1), (second, 2)]


def test_two_faults_of_one_rule(tmp_path):
    found = faults(
        tmp_path, '"server:stop": "server.age:>5 and server.vm_state:up"'
    )
    assert [fault.line for fault in found] == [1, 1]
    assert len({fault.reason for fault in found}) == 2


def test_two_files_that_disagree(tmp_path):
    found = faults(tmp_path, '"server:stop": "@"', '\n"server:stop": "!"')
    assert [str(fault) for fault in found] == [
        f"{tmp_path}/1.yaml:2: `server:stop` is stated otherwise in"
        f" {tmp_path}/0.yaml:1; keep one"
    ]


def test_a_repeated_statement_is_judged_too(tmp_path):
    found = faults(
        tmp_path,
        '"server:stop": "@"\n"server:stop": "server.vm_state:up"\n'
        '"server:stop":\n"server:stop": "role:a or"\n"class:ayn": "@"\n'
        '"class:ayn": "rule:gone"',
        '\n"server:stop": "rule:gone"',
    )
    first, second = (str(tmp_path / name) for name in ("0.yaml", "1.yaml"))
    assert [(fault.file, fault.line) for fault in found] == [
        *[(first, 2)] * 2,
        *[(first, 3)] * 2,
        *[(first, 4)] * 2,
        (first, 5),
        *[(first, 6)] * 3,
        *[(second, 2)] * 2,
    ]
    text = "\n".join(str(fault) for fault in found)
    for reason in (
        "0.yaml:2: `server:stop` is stated twice",
        "0.yaml:2: `server.vm_state:up`: unknown vm_state `up`",
        "0.yaml:3: the rule of `server:stop` is empty",
        "0.yaml:4: a condition is missing behind `or`",
        "0.yaml:5: unknown rule name `class:ayn`",
        "0.yaml:6: unknown rule name `class:ayn`",
        "0.yaml:6: `rule:gone` refers to no rule",
        "1.yaml:2: `server:stop` is stated otherwise in",
        "1.yaml:2: `rule:gone` refers to no rule",
    ):
        assert reason in text


def test_a_circle_through_a_repeated_statement_is_told(tmp_path):
    found = faults(
        tmp_path,
        '"a": "@"\n"b": "rule:a"\n"server:stop": "rule:b"',
        '"a": "rule:b"',
    )
    reasons = {fault.reason.split(":")[0] for fault in found}
    assert "the rules go in a circle" in reasons
    assert len(found) == 2


def test_two_files_that_agree(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text('"server:stop": "rule:busy  or @"')
    rules = load([tmp_path / "a", tmp_path / "b"])
    assert rules.sources == {"server:stop": f"{tmp_path}/a:1"}


@pytest.mark.parametrize("escape", ["\\Uffffffff", "\\U00110000"])
@pytest.mark.parametrize("parser", [yaml.SafeLoader, files._PARSER])
def test_an_escape_beyond_the_last_character(
    tmp_path, monkeypatch, parser, escape
):
    monkeypatch.setattr(files, "_PARSER", parser)
    (found,) = faults(tmp_path, f'"server:stop": "{escape}"')
    assert "stands an escape of YAML's" in found.reason


def test_a_long_circle_is_named_in_part(tmp_path):
    lines = [f'"r{n}": "rule:r{(n + 1) % 3000}"' for n in range(3000)]
    found = faults(tmp_path, "\n".join(lines))
    assert len(found) == 1
    assert found[0].reason.endswith("and 2989 more")


def test_two_cycles_are_both_named(tmp_path):
    found = faults(
        tmp_path,
        '"a": "rule:b"\n"b": "rule:a"\n"c": "rule:d"\n"d": "rule:c or rule:d"',
    )
    assert len(found) == 3
    assert {fault.line for fault in found} == {1, 3, 4}


def test_a_rule_that_grows_by_doubling_is_refused_fast(tmp_path):
    lines = ['"r0": "server.locked:true"']
    lines += [
        f'"r{n}": "rule:r{n - 1} or rule:r{n - 1}"' for n in range(1, 40)
    ]
    found = faults(tmp_path, "\n".join(lines))
    assert len(found) >= 1
    assert "leads to more than 10000 conditions" in found[0].reason


def test_a_long_chain_is_refused(tmp_path):
    lines = ['"r0": "server.locked:true"']
    lines += [f'"r{n}": "rule:r{n - 1}"' for n in range(1, 3000)]
    found = faults(tmp_path, "\n".join(lines))
    assert "is nested more than 100 levels deep" in found[0].reason


def test_the_deepest_rules_that_load_can_be_decided(tmp_path):
    deep = '"r{}": "{}rule:r{}{}"'
    opening = "not (rule:busy and (rule:building or " * 12
    lines = [deep.format(n, opening, n + 1, ")" * 24) for n in range(2)] + [
        '"r2": "server.locked:true"',
        '"server:stop": "rule:r0"',
    ]
    path = tmp_path / "deep.yaml"
    path.write_text("\n".join(lines))
    rules = load([path])
    facts = {
        "server.task_state": "deleting",
        "server.vm_state": "active",
        "server.locked": True,
    }

    def nested(levels):
        if levels:
            return nested(levels - 1)
        return decide(rules, "stop", facts)

    # Below what a WSGI server and its middleware use of the stack.
    assert nested(300).verdict is Verdict.ALLOW
    assert decide(rules, "stop", {**facts, "server.locked": False}).lifts
