# SPDX-License-Identifier: Apache-2.0
"""The road of a request: doors, guard, rules, rights, engine, effect, record.

Whatever fails on it, the request goes to Nova as it came: a failure of ours
neither refuses a request nor answers one. Two cases are the operator's: where
it is not known what the rules would say, and ``on_unknown`` is ``refuse``; and
where it is not known whether a server is concealed from a caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from state_policy.engine.decision import Decision, Verdict
from state_policy.engine.operations import QUARANTINABLE
from state_policy.engine.ports.answering import Answers
from state_policy.engine.ports.effects import Asked, Effect
from state_policy.engine.ports.reading import (
    Caller,
    Location,
    Reader,
    UnreadError,
    may_any,
)
from state_policy.wsgi import allowed, carrying, doors, gates, guard, unread
from state_policy.wsgi.allowed import AllowedActions
from state_policy.wsgi.events import Events
from state_policy.wsgi.explain import Conflicts
from state_policy.wsgi.guard import Guard
from state_policy.wsgi.judge import Judge, Judgement, Request
from state_policy.wsgi.options import Mode, Options
from state_policy.wsgi.record import Recorder
from state_policy.wsgi.warning import warned


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
    options: Options = field(default_factory=Options)
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
        door = doors.find(
            environ, self.options.max_body, self.options.boot_actions
        )
        if door is None:
            if self.events is not None and self.events.addressed(environ):
                return self.events
            return self.app
        return self._entered(environ, door)

    def _entered(
        self, environ: WSGIEnvironment, door: doors.Door
    ) -> WSGIApplication:
        """Return what answers a request that is about a server."""
        if door.unknown is not None:
            self.recorder.unknown_action(door.unknown)
        caller = self.reader.caller(environ)
        if caller is None:
            self.recorder.nobody()
            return self.app
        try:
            location = self._located(door)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
            if self._might_hide(caller):
                return self._unseen(environ, door, caller)
            location = None
        if location is not None and self._hides(caller, location):
            self.recorder.counters.add("concealed")
            return guard.absent(self.app, door.address)
        if self._disabled() or _refused(door, caller):
            return self.app
        if door.operation is None:
            return self._unruled(environ, door, caller, location)
        request = Request(
            door.operation, door.address.lookup, caller, location
        )
        try:
            return self._decided(environ, request)
        except UnreadError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
            if self.judge.strange(request):
                return self.app
        return self._undecided(environ, request, "it could not be judged")

    def _unruled(
        self,
        environ: WSGIEnvironment,
        door: doors.Door,
        caller: Caller,
        location: Location | None,
    ) -> WSGIApplication:
        """Return what answers a request that is no operation."""
        if door.too_long and self._refuses_long(environ, caller):
            self.recorder.counters.add("too_long")
            return unread.too_long(
                self.answers, environ, self.options.max_body
            )
        if door.unreadable is not None:
            self.recorder.unreadable(door.unreadable)
        if (
            self.allowed is None
            or not self._talkative()
            or not allowed.addressed(door.address, environ["REQUEST_METHOD"])
        ):
            return self.app
        return self._told(environ, door.address.lookup, caller, location)

    def _refuses_long(self, environ: WSGIEnvironment, caller: Caller) -> bool:
        """Return whether an action that nobody knows is to be refused."""
        return (
            self.options.mode is Mode.ENFORCE
            and self.judge.refuse_unknown
            and not self.judge.open_to_actions(caller)
            and self.answers.version_accepted(environ)
        )

    def _told(
        self,
        environ: WSGIEnvironment,
        server_id: str,
        caller: Caller,
        location: Location | None,
    ) -> WSGIApplication:
        """Return what tells what can be done to a server."""
        if self.allowed is None:
            return self.app
        try:
            found = location or self.reader.locate(server_id)
            told = self.allowed.answer(caller, found) if found else None
        except UnreadError as error:
            self._failed(error)
            return unread.unseen(
                self.answers, environ, server_id, self.judge.retry_after
            )
        return told or self.app

    def _failed(self, error: Exception) -> None:
        """Write down that something could not be done."""
        if isinstance(error, UnreadError):
            # The driver has said it, once; it may concern every request.
            self.recorder.counters.add("unread")
        else:
            self.recorder.fault(error)

    def _located(self, door: doors.Door) -> Location | None:
        """Return where the server is, if the guard has to know.

        Or if the id does not tell which it is.
        """
        address = door.address
        if address.plain and self.guard is None:
            return None
        for text in address.lookups:
            if len(text) >= guard.SHORTEST_ID:
                found = self.reader.locate(text)
                if found is not None:
                    return found
        return None

    def _hides(self, caller: Caller, location: Location) -> bool:
        return self.guard is not None and self.guard.hides(caller, location)

    def _might_hide(self, caller: Caller) -> bool:
        return self.guard is not None and self.guard.might_hide(caller)

    def _unseen(
        self, environ: WSGIEnvironment, door: doors.Door, caller: Caller
    ) -> WSGIApplication:
        """Return what answers while it is not known who may see a server.

        What Nova refuses before it looks for the server tells nothing of it.
        """
        if _refused(door, caller) or not self.answers.version_accepted(
            environ
        ):
            return self.app
        address = door.address
        if self.options.mode is not Mode.AUDIT:
            return unread.unseen(
                self.answers,
                environ,
                address.lookup,
                self.judge.retry_after,
            )

        def hidden() -> bool:
            try:
                location = self._located(door)
            except Exception as error:  # noqa: BLE001
                self._failed(error)
                return False
            return location is not None and self._hides(caller, location)

        # Audit keeps nobody waiting.
        return guard.looked_at_later(
            self.app,
            hidden,
            lambda asked: self.answers.not_found(asked, address.server_id),
        )

    def _disabled(self) -> bool:
        switch = self.options.disabled_by
        try:
            return switch is not None and switch.exists()
        except OSError as error:
            # Of a directory that cannot be entered. It is no switch, then.
            self.recorder.fault(error)
            return False

    def _decided(
        self, environ: WSGIEnvironment, request: Request
    ) -> WSGIApplication:
        """Return what answers a request that may be decided."""
        judgement = self.judge.judge(request)
        if judgement is None:
            self._compare(request)
            return self._onward(environ, request)
        request = replace(request, location=judgement.location)
        decision = judgement.decide(carrying.impossible(self.effects))
        self._compare(request, judgement, decision)
        if carrying.plain(decision):
            return self._onward(environ, request)
        request = self._narrowed(environ, request)
        may = may_any(
            self.reader, request.caller, judgement.location, request.gates
        )
        if may is None:
            return self._undecided(
                environ, request, "the right to it could not be read"
            )
        if not may:
            return self.app
        if not self.answers.version_accepted(environ):
            return self.app
        if self.options.mode is Mode.ENFORCE:
            return self._carried_out(environ, request, judgement, decision)
        return self._only_told(request, decision)

    def _only_told(
        self, request: Request, decision: Decision
    ) -> WSGIApplication:
        """Return Nova, in the modes that carry nothing out."""
        if decision.verdict is Verdict.ALLOW:
            self._record(request, decision)
            return self.app
        self._record(request, decision, "not carried out")
        if self.options.mode is Mode.WARN:
            return warned(self.app, decision, request.known_id)
        return self.app

    def _undecided(
        self, environ: WSGIEnvironment, request: Request, note: str
    ) -> WSGIApplication:
        """Return what answers who may not be told what the rules say.

        :param note: why, for the log
        """
        decision = self.judge.unread(request.operation.name)
        if decision.verdict is Verdict.ALLOW:
            self._record(request, decision, note)
            return self.app
        if not self.answers.version_accepted(environ):
            return self.app
        if self.options.mode is Mode.ENFORCE:
            self._record(request, decision, note)
            return unread.undecided(
                self.answers, environ, decision, request.known_id
            )
        return self._only_told(request, decision)

    def _carried_out(
        self,
        environ: WSGIEnvironment,
        request: Request,
        judgement: Judgement,
        decision: Decision,
    ) -> WSGIApplication:
        """Return what a verdict leads to."""
        response = carrying.carry_out(
            self.effects,
            Asked(
                request.operation, environ, request.caller, judgement.location
            ),
            judgement,
            decision,
            lambda found, note: self._record(request, found, note),
        )
        return response or self._onward(environ, request)

    def _narrowed(self, environ: WSGIEnvironment, request: Request) -> Request:
        """Return a request with the policies that Nova asks about it."""
        found = gates.asked(
            environ, request.operation, self.answers, self.options.max_body
        )
        return replace(request, policies=found)

    def _onward(
        self, environ: WSGIEnvironment, request: Request
    ) -> WSGIApplication:
        """Return Nova, whose refusals are explained."""
        if (
            self.conflicts is None
            or not self._talkative()
            or "read" in request.operation.classes
        ):
            return self.app
        return self.conflicts.explained(
            self.app, self._narrowed(environ, request)
        )

    def _talkative(self) -> bool:
        """Return whether to tell more than Nova does.

        An empty policy file changes nothing, and only the mode ``enforce``
        changes answers.
        """
        return self.options.mode is Mode.ENFORCE and self.judge.stated

    def _compare(
        self,
        request: Request,
        judgement: Judgement | None = None,
        decision: Decision | None = None,
    ) -> None:
        try:
            found = self.judge.compare(request, judgement, decision)
        except Exception as error:  # noqa: BLE001
            # Rules on trial must not keep those in force from being applied.
            self._failed(error)
            return
        if found is not None:
            seen = replace(request, location=found.location)
            self._record(seen, found.decision, "shadow", found.other)

    def _record(
        self,
        request: Request,
        decision: Decision,
        note: str | None = None,
        shadow: Decision | None = None,
    ) -> None:
        self.recorder.decision(
            decision,
            request.caller,
            request.known_id,
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
