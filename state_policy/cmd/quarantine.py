# SPDX-License-Identifier: Apache-2.0
"""``state-policy quarantine``: what operators do, and what cron does.

Run with an API host's nova.conf and api-paste.ini: the commands work in
Nova's databases, as the filter does.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

from cliff import lister, show

from state_policy.cmd import exits
from state_policy.cmd.works import Works, open_rules, open_works
from state_policy.engine.ports.moving import MovingError
from state_policy.quarantine import operator, sweep
from state_policy.quarantine.operator import Held

_Table = tuple[Sequence[str], Iterable[Sequence[Any]]]


class _Command:
    """What the commands share: how they start, and how they exit."""

    app: Any
    app_args: Any
    code = exits.FINE
    _works: Works | None = None

    def works(self) -> Works:
        """Return what to work with."""
        self._works = open_works(self.app.options)
        return self._works

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run, and exit with what was found.

        :raises CommandError: where it is refused, or a cell does not answer
        """
        try:
            super().run(parsed_args)  # type: ignore[misc]
        except (operator.RefusedError, MovingError) as error:
            raise exits.CommandError(str(error)) from error
        finally:
            if self._works is not None and self._works.driver.hanging():
                self.app.abandon = True
        return self.code

    def complain(self, text: str) -> None:
        """Say what went wrong; the command exits with 1."""
        self.app.stderr.write(f"{text}\n")
        self.code = exits.FINDINGS


class QuarantineList(_Command, lister.Lister):  # type: ignore[misc,unused-ignore]
    """List the servers in quarantine, the oldest first.

    Servers that are concealed are in none of Nova's own lists. Exit code 1:
    something could not be seen.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "--usage",
            action="store_true",
            help="show what the quarantine projects use of their quotas "
            "instead",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> _Table:
        """Return the table."""
        works = self.works()
        if parsed_args.usage:
            return self._usage(works)
        held, unseen = operator.held(works.mover, works.policy)
        for name in unseen:
            self.complain(f"could not be seen: {name}")
        columns = (
            "ID",
            "Name",
            "Phase",
            "Owner Project",
            "Since",
            "VM State",
            "Task State",
            "Running",
            "Next",
        )
        return columns, [_row(one) for one in held]

    def _usage(self, works: Works) -> _Table:
        found = {
            project: works.mover.usages(project)
            for project in works.policy.projects
        }
        for name in sorted({n for one in found.values() for n in one.unseen}):
            self.complain(f"could not be seen: {name}")
        return ("Project", "Resource", "In Use", "Limit"), [
            (
                project,
                usage.resource,
                usage.used,
                "-" if usage.limit is None else usage.limit,
            )
            for project, usages in found.items()
            for usage in usages.resources
        ]


def _row(one: Held) -> tuple[Any, ...]:
    return (
        one.server.id,
        one.server.name,
        str(one.phase),
        one.record.owner.project_id if one.record else "-",
        one.record.since.isoformat() if one.record else "-",
        one.server.vm_state,
        one.server.task_state or "-",
        ", ".join(sorted(one.server.running)) or "-",
        f"{one.next.step}: {one.next.why}",
    )


class QuarantineShow(_Command, show.ShowOne):  # type: ignore[misc,unused-ignore]
    """Show one server in quarantine: whose it was, why and since when."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="ID", help="id of the server")
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Sequence[Any]]:
        """Return names and values."""
        works = self.works()
        one = operator.find(works.mover, works.policy, parsed_args.server)
        if one is None:
            raise exits.CommandError(
                f"server {parsed_args.server} is not in quarantine"
            )
        shown = _shown(one)
        return tuple(shown), tuple(shown.values())


def _shown(one: Held) -> dict[str, Any]:
    server, record = one.server, one.record
    shown: dict[str, Any] = {
        "id": server.id,
        "name": server.name,
        "phase": str(one.phase),
        "next": f"{one.next.step}: {one.next.why}",
        "vm_state": server.vm_state,
        "task_state": server.task_state,
        "running": ", ".join(sorted(server.running)),
        "host": server.host,
        "host_up": server.host_up,
        "volumes": ", ".join(server.volumes),
    }
    if record is None:
        return shown
    return shown | {
        "completed": one.completed,
        "owner_project": record.owner.project_id,
        "owner_user": record.owner.user_id,
        "quarantine_project": record.target.project_id,
        "since": record.since.isoformat(),
        "operation": record.operation,
        "request": record.request_id,
        "decision": record.decision,
        "rule": record.rule,
        "revision": record.revision,
        "was": f"{record.vm_state}/{record.task_state}",
        "was_running": ", ".join(record.running),
        "was_locked_by": record.locked_by,
        "server_group": record.group,
        "ports": ", ".join(port.id for port in record.ports),
        "stranded": ", ".join(record.stranded),
        "delete_attempts": record.attempts,
    }


class _Acting(_Command, lister.Lister):  # type: ignore[misc,unused-ignore]
    """A command that changes something, unless it is a dry run."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="say what would be done and do nothing",
        )
        return parser

    def table(self, done: Iterable[sweep.Done]) -> _Table:
        """Return a table of what was done; errors make the exit code 1."""
        rows = []
        for one in done:
            if one.error is not None:
                self.complain(f"{one.server_id}: {one.step}: {one.error}")
            rows.append((one.server_id, one.step, one.why, _result(one)))
        return ("ID", "Step", "Why", "Result"), rows


def _result(one: sweep.Done) -> str:
    if one.error is not None:
        return "failed"
    return "done" if one.acted else "not done"


class QuarantineSweep(_Acting):
    """End what requests and operators began; run it every minute.

    Settles servers on which nothing runs any more, finishes moves that were
    interrupted, asks the rules for quarantine again about deletes that have
    not ended, and releases and purges by rule and retention. Any number of
    sweeps may run at a time. What rules decide is carried out where the mode
    is enforce and said in the others. While the filter is switched off no
    rule is asked, nor while the rules are not usable, which is an error.
    Exit code 1: something failed, could not be seen or is wrong with the
    rules; the next sweep tries again.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--server", metavar="ID", help="only this server")
        parser.add_argument(
            "--settle-now",
            action="store_true",
            help="settle the server although something still runs on it; "
            "what runs may then never end",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> _Table:
        """Sweep."""
        if parsed_args.settle_now and not parsed_args.server:
            raise exits.CommandError(
                "--settle-now needs --server", exits.USAGE
            )
        works = self.works()
        rules = open_rules(works)
        for fault in rules.faults:
            self.complain(fault)
        work = sweep.Sweep(
            works.mover,
            works.policy,
            rules.rules,
            rules.reader,
            parsed_args.dry_run,
            works.settings.mode == "enforce",
        )
        if parsed_args.server:
            report = self._one(work, parsed_args)
        else:
            report = work.run()
        for name in report.unseen:
            self.complain(f"could not be seen: {name}")
        return self.table(report.done)

    def _one(
        self, work: sweep.Sweep, parsed_args: argparse.Namespace
    ) -> sweep.Report:
        try:
            return work.one(parsed_args.server, parsed_args.settle_now)
        except operator.RefusedError as error:
            self.complain(str(error))
            return sweep.Report(())


class _Each(_Acting):
    """A command for some servers."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "servers", metavar="ID", nargs="+", help="id of a server"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> _Table:
        """Do it for one after the other; refusals do not stop it."""
        works = self.works()
        done = []
        for server_id in parsed_args.servers:
            try:
                done.append(self.act(works, server_id, parsed_args.dry_run))
            except Exception as error:  # noqa: BLE001 the others' turn comes
                self.complain(str(error) or type(error).__name__)
        return self.table(done)

    def act(self, works: Works, server_id: str, dry_run: bool) -> sweep.Done:
        """Do it for one server."""
        raise NotImplementedError


class QuarantineRelease(_Each):
    """Give servers back to their owners.

    A server comes back without the ports that were taken from it; its owner
    can attach them again.
    """

    def act(self, works: Works, server_id: str, dry_run: bool) -> sweep.Done:
        """Release one server."""
        return operator.release_one(
            works.mover, works.policy, server_id, dry_run
        )


class QuarantinePurge(_Each):
    """Delete servers in quarantine for good.

    For a server that is deleting already and does not go away, the state is
    reset first.
    """

    def act(self, works: Works, server_id: str, dry_run: bool) -> sweep.Done:
        """Purge one server."""
        return operator.purge_one(
            works.mover, works.policy, server_id, dry_run
        )
