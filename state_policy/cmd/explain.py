# SPDX-License-Identifier: Apache-2.0
"""``state-policy explain``: one decision, and all about it."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cliff import command

from state_policy.cmd import (
    answer,
    cloud,
    config,
    exits,
    now,
    output,
    rulefiles,
)
from state_policy.cmd.casefile import values
from state_policy.conf import Settings
from state_policy.engine.analysis import cells
from state_policy.engine.analysis.neighbours import Neighbour, neighbours
from state_policy.engine.analysis.unparse import unparse
from state_policy.engine.evaluate import decide
from state_policy.engine.facts import CALLER
from state_policy.engine.operations import OPERATIONS
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import load, sources
from state_policy.rules.faults import nearest

#: Options that give a fact, and the fact.
_FACTS = {
    "state": "vm_state",
    "task_state": "task_state",
    "age": "state_age",
    "host_up": "host_up",
    "locked": "locked",
}
#: So many values are shown in one line.
_SHOWN = 6
_COLUMNS = (
    "operation",
    "verdict",
    "code",
    "retry_after",
    "rule",
    "facts",
    "message",
    "evidence",
    "revision",
)


class Explain(command.Command):  # type: ignore[misc,unused-ignore]
    """Explain what is decided on an operation in a state.

    Facts that are not given count as not read. With ``--server`` they are
    read from a running Nova, with an API host's nova.conf; without an
    OPERATION every one is judged, as ``GET /servers/ID/allowed-actions``
    does. Exit codes: 0 decided, 1 no such server or not to be seen by the
    caller, 2 wrong usage, 3 the rules do not load.
    """

    app: Any

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "operation",
            metavar="OPERATION",
            nargs="?",
            help="all of them where it is left out beside --server",
        )
        parser.add_argument(
            "--rules",
            "--policy-file",
            action="append",
            metavar="FILE",
            help=f"{rulefiles.HELP}; may be given several times (default: "
            "the files that the configuration names)",
        )
        _add_facts(parser)
        _add_caller(parser)
        output.add_format(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Decide and tell."""
        operation = parsed_args.operation
        if operation is not None and operation not in OPERATIONS:
            raise exits.CommandError(
                f"unknown operation `{operation}`"
                f"{nearest(operation, OPERATIONS)}",
                exits.USAGE,
            )
        if parsed_args.server is not None:
            return self._now(parsed_args)
        if operation is None:
            raise exits.CommandError(
                "which OPERATION? It can be left out beside --server",
                exits.USAGE,
            )
        rules = self._rules(parsed_args)
        found = explain(rules, operation, given(parsed_args))
        self._write(parsed_args, found, _COLUMNS, _lines(rules, found))
        return exits.FINE

    def _now(self, parsed_args: argparse.Namespace) -> int:
        """Decide on a server of a running Nova, and tell."""
        _nothing_given(parsed_args)
        named = parsed_args.rules
        rules = rulefiles.load_named(named) if named else None
        works = cloud.connect(self.app.options)
        try:
            if rules is None:
                rules = _configured(works.settings)
            self._tell(parsed_args, rules, now.Server(works, parsed_args))
        finally:
            if works.driver.hanging():
                self.app.abandon = True
        return exits.FINE

    def _tell(
        self,
        parsed_args: argparse.Namespace,
        rules: RuleSet,
        server: now.Server,
    ) -> None:
        listing = server.listing(rules)
        operation = parsed_args.operation
        if operation is None:
            self._write(
                parsed_args,
                {"server": server.id, "allowed_actions": listing},
                now.COLUMNS,
                now.lines(listing),
                listing,
            )
            return
        facts = server.facts(rules, operation)
        found = explain(rules, operation, facts)
        # Operations that only read are in no listing.
        own = [item for item in listing if item["operation"] == operation]
        found["server"] = server.id
        found["allowed_action"] = own[0] if own else None
        lines = [f"now: {now.line(item)}" for item in own]
        self._write(
            parsed_args, found, _COLUMNS, [*lines, *_lines(rules, found)]
        )

    def _write(
        self,
        parsed_args: argparse.Namespace,
        found: Mapping[str, Any],
        columns: Sequence[str],
        lines: Iterable[str],
        rows: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        form, stream = parsed_args.format, self.app.stdout
        if form == "text":
            output.write(stream, form, [], (), list(lines))
        elif form in ("json", "yaml"):
            output.document(stream, form, found)
        else:
            output.write(stream, form, rows or [found], columns, [])

    def _rules(self, parsed_args: argparse.Namespace) -> RuleSet:
        if parsed_args.rules:
            return rulefiles.load_named(parsed_args.rules)
        options, conf = self.app.options, config.load(self.app.options)
        build = Settings.from_conf(conf).with_overrides
        return _configured(config.settings(options, conf, build))


def _configured(settings: Settings) -> RuleSet:
    """Return the rules that the configuration names.

    :raises RulesError: where they do not load
    """
    return load(sources(settings.policy_file, settings.policy_dirs))


def _add_facts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the server")
    group.add_argument(
        "--server",
        metavar="ID",
        help="read its facts from Nova, instead of all the others here",
    )
    group.add_argument("--state", metavar="VM_STATE", help="its vm_state")
    group.add_argument(
        "--task-state", metavar="TASK_STATE", help="its task_state, or none"
    )
    group.add_argument(
        "--age",
        metavar="TIME",
        help="how long it has been in this state: seconds, or as 15m",
    )
    group.add_argument("--host-up", metavar="true|false|none")
    group.add_argument("--locked", metavar="true|false")
    group.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="KIND=VALUE",
        help="any other fact, as in `tag=a,b` or `project.deletes:10m=51`; "
        "`none` for no value; may be given several times",
    )


def _add_caller(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the caller")
    group.add_argument(
        "--role",
        action="append",
        metavar="ROLE",
        help="may be given several times (default: member; beside --server "
        "member and reader: name what a role implies, too)",
    )
    group.add_argument(
        "--not-owner",
        action="store_true",
        help="the server is in another project",
    )
    group.add_argument(
        "--credential",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any other credential; may be given several times",
    )


def _nothing_given(parsed_args: argparse.Namespace) -> None:
    """Refuse facts beside a server that has its own."""
    options = [option for option in _FACTS if getattr(parsed_args, option)]
    if parsed_args.fact:
        options.append("fact")
    if options:
        named = ", ".join(f"--{o.replace('_', '-')}" for o in options)
        raise exits.CommandError(
            f"{named} beside --server: its facts are read", exits.USAGE
        )


def given(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the facts that the arguments give.

    :raises CommandError: for one that makes no sense
    """
    stated = {
        key: getattr(parsed_args, option)
        for option, key in _FACTS.items()
        if getattr(parsed_args, option) is not None
    }
    try:
        stated |= values.pairs(parsed_args.fact)
        caller = {
            "owner": not parsed_args.not_owner,
            "roles": parsed_args.role or ["member"],
            **values.pairs(parsed_args.credential),
        }
        facts: dict[str, Any] = dict(
            values.fact(key, value) for key, value in stated.items()
        )
        facts[CALLER] = values.caller(caller)
    except ValueError as error:
        raise exits.CommandError(str(error), exits.USAGE) from error
    return facts


def explain(
    rules: RuleSet, operation: str, facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a decision with its answer and what would change it."""
    decision = decide(rules, operation, facts, id=str(uuid.uuid4()))
    found = {"operation": operation, **answer.of(decision, facts)}
    found["would_change"] = [
        _neighbour(near) for near in neighbours(rules, operation, facts)
    ]
    found["answer"] = answer.http(decision, facts)
    return found


def _neighbour(near: Neighbour) -> dict[str, Any]:
    return {
        "facts": {fact: list(labels) for fact, labels in near.facts.items()},
        "verdict": str(near.label.verdict),
        "code": near.label.code,
        "evidence": near.label.evidence,
    }


def _lines(rules: RuleSet, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the explanation as a person reads it."""
    verdict = found["verdict"]
    extra = [f"code {found['code']}"] if found["code"] else []
    if found["retry_after"] is not None:
        extra.append(f"Retry-After {found['retry_after']}")
    if found["evidence"]:
        extra.append("evidence first")
    if found["undecided"]:
        extra.append("undecided: facts are missing")
    yield f"{found['operation']}: {verdict}" + (
        f" ({', '.join(extra)})" if extra else ""
    )
    yield "rules:"
    for name in found["rules"]:
        place = rules.sources.get(name, "default")
        expression = rules.expressions.get(name)
        text = unparse(expression) if expression is not None else "!"
        yield f"  {name}: {text}  ({place})"
    yield "facts that it looked at:"
    for key, value in found["facts"].items():
        yield f"  {key}: {output.cell(value) or 'none'}"
    yield "the client gets:"
    yield from _answer_lines(found["answer"])
    yield "it would differ with:"
    for near in found["would_change"] or ():
        code = f" {near['code']}" if near["code"] else ""
        change = " and ".join(
            f"{fact} {_few(labels)}" for fact, labels in near["facts"].items()
        )
        yield f"  {change}: {near['verdict']}{code}"
    if not found["would_change"]:
        yield "  nothing that the rules look at"


def _few(labels: list[str]) -> str:
    """Return values in few words; neighbouring spans are one."""
    if labels[0].startswith(("<", ">")):
        return cells.merged(labels)
    shown = labels[:_SHOWN]
    if len(labels) > _SHOWN:
        shown.append(f"{len(labels) - _SHOWN} more")
    return ", ".join(shown)


def _answer_lines(found: Mapping[str, Any]) -> Iterator[str]:
    if found["status"] is None:
        yield f"  {found['note']}"
        return
    yield f"  HTTP {found['status']}"
    for name, value in found["headers"].items():
        yield f"  {name}: {value}"
    if found["message"]:
        yield f"  {found['message']}"
    if found["note"]:
        yield f"  ({found['note']})"
