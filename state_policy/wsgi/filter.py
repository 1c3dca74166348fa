# SPDX-License-Identifier: Apache-2.0
"""The road of a request: doors, guard, rules, rights, engine, effect, record.

Whatever fails on it, the request goes to Nova as it came: a failure of ours
neither refuses a request nor answers one.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.operations import QUARANTINABLE
from state_policy.engine.ports.answering import Answers
from state_policy.engine.ports.effects import Asked, Effect
from state_policy.engine.ports.reading import Caller, Location, Reader
from state_policy.wsgi import allowed, doors, guard
from state_policy.wsgi.allowed import AllowedActions
from state_policy.wsgi.events import Events
from state_policy.wsgi.explain import Conflicts
from state_policy.wsgi.guard import Guard
from state_policy.wsgi.judge import Judge, Judgement, Request
from state_policy.wsgi.record import Recorder
from state_policy.wsgi.warning import warned


class Mode(enum.StrEnum):
    """What happens to a verdict other than allow."""

    ENFORCE = "enforce"
    WARN = "warn"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class Options:
    """How the filter runs.

    :ivar max_body: bytes of a body that are read to find an action's name
    :ivar disabled_by: while this file exists nothing is decided
    """

    mode: Mode = Mode.ENFORCE
    max_body: int = 114688
    disabled_by: Path | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """A WSGI filter.

    :ivar app: what stands behind it
    :ivar effects: what carries each verdict out; DENY must be among them
    :ivar guard: None where the quarantine is off
    :ivar events: None where the quarantine is off
    :ivar conflicts: None where Nova's refusals are left alone
    :ivar allowed: None where nobody is told what is possible
    """

    app: WSGIApplication
    reader: Reader
    answers: Answers
    judge: Judge
    effects: Mapping[Verdict, Effect]
    recorder: Recorder
    options: Options = Options()
    guard: Guard | None = None
    events: Events | None = None
    conflicts: Conflicts | None = None
    allowed: AllowedActions | None = None

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Answer a request, or hand it on."""
        try:
            chosen = self._choose(environ)
        except Exception as error:  # noqa: BLE001
            self.recorder.fault(error)
            chosen = self.app
        return chosen(environ, start_response)

    def _choose(self, environ: WSGIEnvironment) -> WSGIApplication:
        """Return what answers: Nova, or something of ours."""
        if self.guard is None and self.judge.idle:
            return self.app
        door = doors.find(environ, self.options.max_body)
        if door is None:
            if self.events is not None and self.events.addressed(environ):
                return self.events
            return self.app
        self._note(door)
        caller = self.reader.caller(environ)
        if caller is None:
            self.recorder.nobody()
            return self.app
        location = self._located(door)
        if location is not None and self._hides(caller, location):
            self.recorder.counters.add("concealed")
            return guard.absent(self.app, door.address)
        if self._disabled() or _refused(door, caller):
            return self.app
        if door.operation is None:
            return self._told(environ, door, caller, location) or self.app
        request = Request(
            door.operation, door.address.lookup, caller, location
        )
        return self._decided(environ, request)

    def _told(
        self,
        environ: WSGIEnvironment,
        door: doors.Door,
        caller: Caller,
        location: Location | None,
    ) -> WSGIApplication | None:
        """Return what can be done to a server, if that is the question."""
        if (
            self.allowed is None
            or not self._talkative()
            or not allowed.addressed(door.address, environ["REQUEST_METHOD"])
        ):
            return None
        found = location or self.reader.locate(door.address.lookup)
        return self.allowed.answer(caller, found) if found else None

    def _note(self, door: doors.Door) -> None:
        if door.unknown is not None:
            self.recorder.unknown_action(door.unknown)
        if door.unreadable is not None:
            self.recorder.unreadable(door.unreadable)

    def _located(self, door: doors.Door) -> Location | None:
        """Return where the server is, if the guard has to know."""
        server_id = door.address.lookup
        if self.guard is None or len(server_id) < guard.SHORTEST_ID:
            return None
        return self.reader.locate(server_id)

    def _hides(self, caller: Caller, location: Location) -> bool:
        return self.guard is not None and self.guard.hides(caller, location)

    def _disabled(self) -> bool:
        switch = self.options.disabled_by
        return switch is not None and switch.exists()

    def _decided(
        self, environ: WSGIEnvironment, request: Request
    ) -> WSGIApplication:
        """Return what answers a request that may be decided."""
        judgement = self.judge.judge(request)
        if judgement is None:
            return self._onward(request)
        request = replace(request, location=judgement.location)
        decision = judgement.decide(self._impossible())
        self._compare(request, judgement, decision)
        if _plain(decision):
            return self._onward(request)
        if not self.reader.may(
            request.caller, judgement.location, request.operation.gate
        ):
            return self.app
        if not self.answers.version_accepted(environ):
            return self.app
        if self.options.mode is Mode.ENFORCE:
            return self._carried_out(environ, request, judgement, decision)
        self._record(request, decision, "not carried out")
        if self.options.mode is Mode.WARN:
            return warned(self.app, decision, judgement.location.server_id)
        return self.app

    def _carried_out(
        self,
        environ: WSGIEnvironment,
        request: Request,
        judgement: Judgement,
        decision: Decision,
    ) -> WSGIApplication:
        """Have a verdict carried out, or the next where it cannot be."""
        asked = Asked(
            request.operation, environ, request.caller, judgement.location
        )
        without = set(self._impossible())
        while decision.verdict is not Verdict.ALLOW:
            effect = self.effects[decision.verdict]
            outcome = effect.apply(asked, decision, judgement.facts)
            self._record(request, decision, outcome.reason)
            if outcome.response is not None:
                return outcome.response
            without.add(decision.verdict)
            decision = judgement.decide(without)
            if decision.verdict in without:
                break
        if not _plain(decision):
            self._record(request, decision)
        return self._onward(request)

    def _onward(self, request: Request) -> WSGIApplication:
        """Return Nova, whose refusals are explained."""
        if (
            self.conflicts is None
            or not self._talkative()
            or "read" in request.operation.classes
        ):
            return self.app
        return self.conflicts.explained(self.app, request)

    def _talkative(self) -> bool:
        """Return whether to tell more than Nova does.

        An empty policy file changes nothing, and only the mode ``enforce``
        changes answers.
        """
        return self.options.mode is Mode.ENFORCE and self.judge.stated

    def _impossible(self) -> frozenset[Verdict]:
        """Return the verdicts that nothing here can carry out."""
        return frozenset(
            verdict
            for verdict in Verdict
            if verdict is not Verdict.ALLOW and verdict not in self.effects
        )

    def _compare(
        self, request: Request, judgement: Judgement, decision: Decision
    ) -> None:
        try:
            other = judgement.differing(decision)
        except Exception as error:  # noqa: BLE001
            # Rules on trial must not keep those in force from being applied.
            self.recorder.fault(error)
            return
        if other is not None:
            self._record(request, decision, "shadow", other)

    def _record(
        self,
        request: Request,
        decision: Decision,
        note: str | None = None,
        shadow: Decision | None = None,
    ) -> None:
        location = request.location
        self.recorder.decision(
            decision,
            request.caller,
            location.server_id if location else request.server_id,
            note=note,
            shadow=shadow,
        )


def _refused(door: doors.Door, caller: Caller) -> bool:
    """Return whether Nova refuses a request before it looks at the state."""
    if door.address.project_id not in (None, caller.project_id):
        return True
    # Deletes look at the form of the id. They must not act on a server that
    # Nova would not find.
    return (
        door.operation is not None
        and door.operation.name in QUARANTINABLE
        and not door.address.plain
    )


def _plain(decision: Decision) -> bool:
    """Return whether there is nothing to do, to tell or to write down."""
    return (
        decision.verdict is Verdict.ALLOW
        and not decision.undecided
        and not decision.evidence
    )
