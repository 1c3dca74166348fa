# SPDX-License-Identifier: Apache-2.0
"""Ends what requests and operators have begun; run every minute.

Two sweeps at once are harmless: every step either excludes the other or can
be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Set

from state_policy.engine.facts import Facts
from state_policy.engine.ports.moving import (
    GoneError,
    Mover,
    OvertakenError,
    Server,
)
from state_policy.engine.ports.reading import Reader, UnreadError
from state_policy.engine.ruleset import Rule, RuleSet
from state_policy.quarantine import finish, operator, purge, release
from state_policy.quarantine.plan import (
    Phase,
    Plan,
    Step,
    age,
    completed,
    phase,
    plan,
    stranded,
)
from state_policy.quarantine.policy import Policy
from state_policy.quarantine.reask import Reasking
from state_policy.quarantine.record import Kind, Record, dump, of
from state_policy.quarantine.report import Done, Report

LOG = logging.getLogger(__name__)

__all__ = ["Done", "Report", "Sweep"]

#: Ports may be bound late, by a slow network service: so long are they
#: looked at after the newest record, in seconds.
LATE = 86_400

RELEASE_RULE = "quarantine:release"
PURGE_RULE = "quarantine:purge"


class Sweep:
    """One run over every server in quarantine.

    :param rules: for the rules of purge, release and quarantine; None: no
        rule is asked
    :param reader: reads what those rules look at
    :param dry_run: say what would be done and do nothing
    :param enforced: whether what the rules decide is carried out; False:
        it is said. What options decide (deadline, retention) and what has
        begun is carried out all the same
    """

    def __init__(
        self,
        mover: Mover,
        policy: Policy,
        rules: RuleSet | None = None,
        reader: Reader | None = None,
        dry_run: bool = False,
        enforced: bool = True,
    ) -> None:
        self._enforced = enforced
        self._mover = mover
        self._policy = policy
        self._rules = rules
        self._reader = reader
        self._dry_run = dry_run

    def run(self) -> Report:
        """Sweep everything; what fails for one server is told, not raised."""
        listing = self._mover.held(self._policy.projects)
        done = [
            found
            for server_id in listing.ids
            for found in self._guarded(server_id, self._sweep)
        ]
        return Report(tuple(done), listing.unseen).joined(self._reask())

    def one(self, server_id: str, settle_now: bool = False) -> Report:
        """Sweep one server.

        :param settle_now: settle it although something still runs, which
            may then never end
        :raises RefusedError: where it is not in quarantine, or is to be
            settled and not concealed
        """

        def work(found: str) -> Iterable[Done]:
            operator.refuse_to_sweep(
                self._mover, self._policy, found, settle_now
            )
            return self._sweep(found, settle_now)

        return Report(tuple(self._guarded(server_id, work)))

    def _guarded(
        self, server_id: str, work: Callable[[str], Iterable[Done]]
    ) -> list[Done]:
        """Return what was done; what fails after it takes nothing from it."""
        done: list[Done] = []
        try:
            for found in work(server_id):
                done.append(found)
        except operator.RefusedError:
            raise
        except (GoneError, OvertakenError) as e:
            # What is to be done about it is for the next sweep to see.
            LOG.info("%s", e)
        except Exception as e:
            LOG.warning("sweeping %s failed", server_id, exc_info=True)
            error = f"{type(e).__name__}: {e}"
            why = "it could not be swept"
            done.append(Done(server_id, "sweep", why, error))
        return done

    def _sweep(
        self, server_id: str, settle_now: bool = False
    ) -> Iterator[Done]:
        server = self._mover.look(server_id)
        if server is None:
            return
        record = of(server)
        found = plan(server, record, self._policy, self._mover.now())
        if found.step in (Step.ODD, Step.STUCK):
            yield Done(server_id, str(found.step), found.why, found.why)
            return
        if record is None:
            return
        if settle_now and phase(server, record, self._policy) is (
            Phase.CONCEALED
        ):
            found = Plan(Step.SETTLE, "it was asked for")
        done = self._finish(server, record, found)
        yield from done
        if any(d.error and d.step == "finish mapping" for d in done):
            return
        if found.step is Step.FINISH and not server.hidden:
            ruled = self._ruled(server, record)
            if ruled is not None:
                yield from self._do(server, record, ruled, self._enforced)
                return
        yield from self._do(server, record, found)

    def _finish(
        self, server: Server, record: Record, found: Plan
    ) -> list[Done]:
        """Do what the stores still lack, before anything else."""
        if found.step not in (Step.FINISH, Step.SETTLE):
            return []
        seconds = (self._mover.now() - record.at).total_seconds()
        if not server.hidden and seconds > LATE:
            return []
        return [
            done
            for leftover in finish.leftovers(
                self._mover, self._policy, server, record
            )
            if (done := self._make_up(server, leftover)) is not None
        ]

    def _make_up(
        self, server: Server, leftover: finish.Leftover
    ) -> Done | None:
        server_id = server.id
        step, why, error = f"finish {leftover.name}", "it was left over", None
        try:
            if not leftover.lacking() or self._overtaken(server):
                return None
            if not self._dry_run:
                leftover.act()
        except (GoneError, OvertakenError):
            return None
        except Exception as e:
            LOG.warning("%s: %s failed", server_id, step, exc_info=True)
            error = f"{type(e).__name__}: {e}"
        return Done(server_id, step, why, error, not self._dry_run)

    def _do(
        self,
        server: Server,
        record: Record,
        found: Plan,
        enforced: bool = True,
    ) -> list[Done]:
        acts: dict[Step, Callable[[Server, Record], bool]] = {
            Step.SETTLE: self._settle,
            Step.GIVE_BACK: self._give_back,
            Step.RELEASE: self._release,
            Step.PURGE: self._purge,
        }
        act = acts.get(found.step)
        if act is None:
            return []
        acting = enforced and not self._dry_run
        step, why, error = str(found.step), found.why, None
        try:
            if acting and self._overtaken(server):
                return []
            if found.step is Step.RELEASE:
                why += release.caveat(self._mover, server, record)
            if acting and not act(server, record):
                return []
        except (GoneError, OvertakenError):
            raise
        except Exception as e:
            LOG.warning("%s: %s failed", server.id, step, exc_info=True)
            error = f"{type(e).__name__}: {e}"
        return [Done(server.id, step, why, error, acting)]

    def _overtaken(self, server: Server) -> bool:
        """Return whether somebody has gone on with a server since it was seen.

        Another sweep, or an operator who released it: then it must neither
        be purged nor charged. What is left to do is for the next sweep.
        """
        now = self._mover.look(server.id)
        return now is None or now.record != server.record

    def _settle(self, server: Server, record: Record) -> bool:
        """Settle it; return False where its row is another by now."""
        record = record.next(
            Kind.SETTLE, self._mover.now(), stranded=stranded(server)
        )
        if not self._mover.settle_row(server, record.target, dump(record)):
            return False
        finish.tell(self._mover, "settle", record)
        return True

    def _give_back(self, server: Server, record: Record) -> bool:
        release.give_back_deleted(self._mover, server, record)
        return True

    def _release(self, server: Server, record: Record) -> bool:
        release.release(self._mover, server, record)
        return True

    def _purge(self, server: Server, record: Record) -> bool:
        purge.purge(self._mover, server, record)
        return True

    def _ruled(self, server: Server, record: Record) -> Plan | None:
        """Return what the rules say of a settled server.

        Where both are true it is released: nothing is lost by it.
        """
        for name, step in (
            (RELEASE_RULE, Step.RELEASE),
            (PURGE_RULE, Step.PURGE),
        ):
            rule = self._rules.rules.get(name) if self._rules else None
            if rule is None or rule.constant is False:
                continue
            if rule.test(self._facts(server, record, rule)) is True:
                return Plan(step, f"rule {name}")
        return None

    def _facts(self, server: Server, record: Record, rule: Rule) -> Facts:
        facts: dict[str, object] = {
            "quarantine.age": age(record, self._mover.now()),
            "quarantine.completed": completed(server, record),
        }
        others = rule.needs - facts.keys()
        if others and self._reader is not None:
            facts |= self._read(self._reader, server, record, others)
        return facts

    def _read(
        self, reader: Reader, server: Server, record: Record, keys: Set[str]
    ) -> Facts:
        try:
            location = reader.locate(server.id)
        except UnreadError:
            # As any fact that is not read: a rule that needs it is not true.
            LOG.warning("server %s cannot be looked up", server.id)
            return {}
        if location is None:
            return {}
        caller = self._mover.caller_for(record.target, "")
        return reader.read(caller, location, keys)

    def _reask(self) -> Report:
        if self._rules is None or self._reader is None:
            return Report(())
        try:
            return Reasking(
                self._mover,
                self._policy,
                self._rules,
                self._reader,
                dry_run=self._dry_run or not self._enforced,
            ).run()
        except Exception as e:
            LOG.warning("asking again failed", exc_info=True)
            error = f"{type(e).__name__}: {e}"
            return Report(
                (Done("-", "ask again", "deletes have not ended", error),)
            )
