# SPDX-License-Identifier: Apache-2.0
"""Random rules, facts and files: every strategy of the property tests.

A random rule is a tree of tuples that the tests write down as text, load,
and evaluate themselves:

``("is", kind, match)``, ``("not", part)``, ``("and", parts)``,
``("or", parts)``, ``("rule", name)``, ``("always",)``, ``("never",)``.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from state_policy.engine import operations, states
from state_policy.engine.facts import Age

#: The id of a volume.
VOLUME = "155d900f-4e14-4e4c-a73d-069cbf4541e6"

#: Kinds, and the matches that random rules use: few, so that they meet.
MATCHES: dict[str, tuple[str, ...]] = {
    "server.vm_state": ("building", "active", "error,active", "resized"),
    "server.task_state": (
        "none",
        "spawning",
        "deleting,spawning",
        "scheduling,none",
        "image_uploading",
    ),
    "server.power_state": ("running", "shutdown,crashed"),
    "server.state_age": (">=10m", "<10m", ">1h", "<=1h"),
    "server.age": (">=1d", "<10m"),
    "server.running": ("any", "none", "create", "delete,stop"),
    "server.running_age": (">=10m", "<1h", "none"),
    "server.attempts": (">=2", "<1"),
    "server.launched": ("true", "false"),
    "server.locked": ("true", "false"),
    "server.host_up": ("true", "false", "none", "false,none"),
    "server.cell_up": ("true", "false"),
    "server.migration": ("evacuation", "none", "any"),
    "server.hypervisor": ("ironic", "none", "QEMU,ironic"),
    "server.flavor": ("m1.small", "m1%2Esmall,a%20b"),
    "server.volumes": ("any", "none", VOLUME),
    "server.tag": ("keep", "keep,prod", "none"),
    "server.metadata": ("role=db", "role=db,role=web"),
    "project.deletes": ("10m:>50", "10m:<=5", "1h:>50"),
    "cloud.stuck": (">50", "<=50"),
    "role": ("admin", "Member"),
    "project_id": ("a1", "%(project_id)s"),
    "is_admin": ("True", "False"),
    "system_scope": ("all",),
}

_AGES = (0, 1, 599, 600, 601, 3599, 3600, 3601, 86399, 86400, 10**7)
_EXACT = st.sampled_from([Age(seconds) for seconds in _AGES])
_LEAST = st.sampled_from([Age(seconds, exact=False) for seconds in _AGES])
_FLAG = st.booleans()
_COUNT = st.sampled_from((0, 1, 2, 5, 6, 50, 51, 1000))


def _some(*names: str) -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(names), min_size=1)


#: Values of each fact, none included where there can be none.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "server.vm_state": st.sampled_from(states.VM_STATES),
    "server.task_state": st.one_of(
        st.none(), st.sampled_from(states.TASK_STATES)
    ),
    "server.power_state": st.sampled_from(states.POWER_STATES),
    "server.state_age": _EXACT,
    "server.age": _EXACT,
    "server.running": st.none() | _some("create", "delete", "stop", "lock"),
    "server.running_age": st.none() | _EXACT,
    "server.attempts": _COUNT,
    "server.launched": _FLAG,
    "server.locked": _FLAG,
    "server.host_up": st.none() | _FLAG,
    "server.cell_up": _FLAG,
    "server.migration": st.none() | _some("evacuation", "resize"),
    "server.hypervisor": st.sampled_from((None, "ironic", "QEMU", "x")),
    "server.flavor": st.sampled_from(("m1.small", "a b", "x")),
    "server.volumes": st.none() | _some(VOLUME, "v2"),
    "server.tag": st.none() | _some("keep", "prod", "x"),
    "server.metadata": st.none() | _some("role=db", "role=web", "a=b"),
    "project.deletes:10m": _COUNT,
    "project.deletes:1h": _COUNT,
    "cloud.stuck": _COUNT,
}

#: Facts with a lower bound in place of an age now and then.
_UNSURE = {
    **VALUES,
    "server.state_age": _EXACT | _LEAST,
    "server.age": _EXACT | _LEAST,
    "server.running_age": st.none() | _EXACT | _LEAST,
}

CREDENTIALS = st.fixed_dictionaries(
    {
        "roles": st.lists(st.sampled_from(("admin", "member", "reader"))),
        "project_id": st.sampled_from(("a1", "a2")),
        "user_id": st.sampled_from(("u1", "u2")),
        "is_admin": st.booleans(),
        "system_scope": st.sampled_from((None, "all")),
        "target": st.fixed_dictionaries(
            {
                "project_id": st.sampled_from(("a1", "a2")),
                "user_id": st.sampled_from(("u1", "u2")),
            }
        ),
    }
)


def facts(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return facts, each of them read or not."""
    return st.fixed_dictionaries(
        {},
        optional={
            **{k: v for k, v in _UNSURE.items() if not keys or k in keys},
            "caller": CREDENTIALS,
        },
    )


#: Every fact, every age exact.
WHOLE_FACTS = st.fixed_dictionaries({**VALUES, "caller": CREDENTIALS})

#: Facts that nobody promised.
JUNK_FACTS = st.dictionaries(
    st.sampled_from([*VALUES, "caller"]),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.lists(st.integers(), max_size=2)
    | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
    | st.builds(Age, st.floats(), st.booleans())
    | st.builds(Age, st.text(max_size=1))
    | st.builds(object),
)


def trees(
    kinds: tuple[str, ...] = tuple(MATCHES), names: tuple[str, ...] = ()
) -> st.SearchStrategy[Any]:
    """Return random rules as trees.

    :param kinds: kinds of the conditions
    :param names: rules that may be referred to
    """
    leaves = st.sampled_from(
        [("is", kind, match) for kind in kinds for match in MATCHES[kind]]
        + [("rule", name) for name in names]
    ) | st.sampled_from([("always",), ("never",)])
    return st.recursive(
        leaves,
        lambda part: (
            st.tuples(st.just("not"), part)
            | st.tuples(
                st.sampled_from(("and", "or")),
                st.lists(part, min_size=2, max_size=3),
            )
        ),
        max_leaves=5,
    )


def written(tree: Any) -> str:
    """Return the text of a rule."""
    match tree:
        case ("is", kind, match):
            return f"{kind}:{match}"
        case ("rule", name):
            return f"rule:{name}"
        case ("not", part):
            return f"not {_inner(part)}"
        case ("and" | "or" as word, parts):
            return f" {word} ".join(_inner(part) for part in parts)
    return "@" if tree == ("always",) else "!"


def _inner(tree: Any) -> str:
    text = written(tree)
    return f"({text})" if tree[0] in ("and", "or") else text


#: Rules of `delete` and its suffixes, two helpers among them.
DELETE = (
    "server:delete",
    "server:delete:wait",
    "server:delete:brake",
    "server:delete:quarantine",
    "server:delete:escalate",
    "server:delete:evidence",
)


def rule_files(
    kinds: tuple[str, ...] = tuple(MATCHES),
) -> st.SearchStrategy[dict[str, Any]]:
    """Return the trees of a file that rules `delete`, by name."""
    tree = trees(kinds, ("helper", "busy", "building", "class:power"))
    return st.fixed_dictionaries(
        {"helper": trees(kinds), "class:power": trees(kinds)},
        optional=dict.fromkeys(DELETE, tree),
    )


_WORDS = st.sampled_from(
    [
        *(f"{kind}:{m}" for kind, found in MATCHES.items() for m in found),
        *("and", "or", "not", "(", ")", "!", "@", "rule:busy", "rule:", ":"),
        *("rule:server:stop", "role:a,b", "server.age:>1", "server.x:y"),
        *(
            "'a'",
            '"',
            "%",
            "%(x)s",
            "http://a",
            "\t",
            "\x00",
            "é",
            "None:None",
        ),
    ]
)
_NAMES = st.sampled_from(
    [
        *(f"server:{name}" for name in list(operations.OPERATIONS)[:9]),
        *("class:any", "class:x", "busy", "mine", "server:delete:wait", "on"),
        *("quarantine:purge", "default", "a b", "1", ""),
    ]
)
_SCALARS = (
    st.lists(_WORDS, max_size=6).map(" ".join)
    | st.text(max_size=12)
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
)

#: What may stand in a policy file after `yaml.dump`: rules, good and bad.
CONTENTS = st.dictionaries(
    _NAMES | st.text(max_size=5) | st.integers(),
    _SCALARS | st.lists(_SCALARS, max_size=2),
    max_size=5,
)

#: What is cut out and put in by a mutation.
SNIPPETS = st.sampled_from(
    [
        *(")or(", ")and(", "(", ")", " not(", "\u200b", "\u2028"),
        *(
            '"',
            "'",
            ":",
            "\n",
            " ",
            "\t",
            "!",
            "@",
            "[",
            "{",
            "&a",
            "*a",
            "---",
        ),
        *(
            "#",
            "%",
            ",",
            "|",
            ">",
            "-",
            "?",
            "\r",
            "\x85",
            "\ufeff",
            "\\",
            "é",
        ),
    ]
) | st.text(max_size=3)
