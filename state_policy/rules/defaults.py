# SPDX-License-Identifier: Apache-2.0
"""The rules that hold where no file says otherwise: they change nothing.

``server:stop`` follows ``class:power``, that follows ``class:any``, and that
is ``@``. What would act (suffixes, purge, release) is ``!``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType

from oslo_config import cfg
from oslo_policy import opts, policy

from state_policy.engine import operations, states

ALWAYS, NEVER = "@", "!"

#: Where oslo.policy's tools look unless they are told otherwise.
POLICY_FILE = "/etc/state_policy/state_policy.yaml"

#: Rules asked by the sweep for servers in quarantine; nobody calls there.
QUARANTINE_RULES = ("quarantine:purge", "quarantine:release")

#: Any task at all.
BUSY = "busy"

_SUFFIX_HELP = {
    "wait": "Whether a refused {0} waits until passing facts allow it.",
    "brake": "Whether {0} is slowed down (429).",
    "quarantine": "Whether {0} moves the server to quarantine instead.",
    "escalate": "Whether {0} of a server that is stuck takes the next rung.",
    "evidence": "Whether evidence is kept before {0} is carried out.",
}


@functools.cache
def texts() -> Mapping[str, str]:
    """Return the text of every rule by name, in the order of the sample."""
    return MappingProxyType({rule.name: rule.check_str for rule in _rules()})


@functools.cache
def groups() -> Mapping[str, str]:
    """Return the text of every predefined group by name."""
    found = {
        name: f"{kind}:{','.join(values)}"
        for name, (kind, values) in states.GROUPS.items()
    }
    found[BUSY] = "not server.task_state:none"
    return MappingProxyType(found)


def list_rules() -> list[policy.RuleDefault]:
    """Return every rule, for oslo.policy's tools."""
    return list(_rules())


def get_enforcer() -> policy.Enforcer:
    """Return an enforcer that knows these rules, for oslo.policy's tools.

    It has options of its own, read from the tool's ``--config-file``: the
    validator opens the file that ``[oslo_policy] policy_file`` names there.
    Policy directories are left out, since Nova's would be found.
    """
    tool = cfg.CONF
    # The validator asks the tool's own options for the file.
    for group, options in opts.list_opts():
        tool.register_opts(options, group)
    files = tool.config_file if "config_file" in tool else None
    arguments = [f"--config-file={name}" for name in files or ()]
    conf = cfg.ConfigOpts()
    conf(arguments, project="state_policy", default_config_files=[])
    enforcer = policy.Enforcer(conf)
    conf.set_override("policy_dirs", [], group="oslo_policy")
    if not files:
        enforcer.policy_file = POLICY_FILE
    enforcer.register_defaults(list_rules())
    return enforcer


@functools.cache
def _rules() -> tuple[policy.RuleDefault, ...]:
    return (
        *_group_rules(),
        *_class_rules(),
        *(
            rule
            for operation in operations.OPERATIONS.values()
            for rule in _operation_rules(operation)
        ),
        *_quarantine_rules(),
    )


def _group_rules() -> list[policy.RuleDefault]:
    return [
        policy.RuleDefault(
            name, text, description=f"Predefined group: {name}."
        )
        for name, text in groups().items()
    ]


def _class_rules() -> list[policy.RuleDefault]:
    found = [
        policy.RuleDefault(
            "class:any",
            ALWAYS,
            description="Every operation that is not of the class read.",
        )
    ]
    for cls in operations.CLASSES:
        free = cls in operations.UNGOVERNED
        found.append(
            policy.RuleDefault(
                f"class:{cls}",
                ALWAYS if free else "rule:class:any",
                description=f"Every operation of the class {cls}.",
            )
        )
    return found


def _operation_rules(
    operation: operations.Operation,
) -> list[policy.RuleDefault]:
    name = operation.name
    followed = operations.FOLLOWS.get(name)
    may = " and ".join(f"rule:class:{cls}" for cls in operation.classes)
    if followed:
        may = f"rule:server:{followed}"
    words = f"Whether {name} is allowed."
    found: list[policy.RuleDefault] = [_documented(operation, "", may, words)]
    for suffix in operations.suffixes(name):
        text = f"rule:server:{followed}:{suffix}" if followed else NEVER
        words = _SUFFIX_HELP[suffix].format(name)
        found.append(_documented(operation, f":{suffix}", text, words))
    return found


def _documented(
    operation: operations.Operation, suffix: str, text: str, words: str
) -> policy.DocumentedRuleDefault:
    path = operation.path
    if operation.action:
        path += f" ({operation.action})"
    return policy.DocumentedRuleDefault(
        f"server:{operation.name}{suffix}",
        text,
        words,
        [{"method": operation.method, "path": path}],
    )


def _quarantine_rules() -> list[policy.RuleDefault]:
    words = {
        "quarantine:purge": "Whether a server in quarantine is deleted.",
        "quarantine:release": "Whether a server in quarantine goes back.",
    }
    return [
        policy.RuleDefault(name, NEVER, description=words[name])
        for name in QUARANTINE_RULES
    ]
