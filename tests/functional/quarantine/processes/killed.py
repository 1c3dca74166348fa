# SPDX-License-Identifier: Apache-2.0
"""Processes that are killed in the middle of a move, and sweeps after them.

Run as a program: it forks a process for every act, so it must not share a
process with tests. It prints what it found as JSON; ``test_killed`` judges.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from sqlalchemy import orm

from state_policy.conf.settings import QuarantineSettings
from state_policy.drivers.nova.moving import registry, rows
from state_policy.quarantine import operator
from state_policy.quarantine.conceal import Wish, conceal
from state_policy.quarantine.sweep import Sweep
from tests.functional.quarantine.processes import cloud

POLICY = QuarantineSettings(
    enabled=True,
    projects=(cloud.KEEPER.project_id,),
    user=cloud.KEEPER.user_id,
    settle_after=0,
    max_per_hour=0,
    request_budget=30.0,
)

WISH = Wish(
    operation="delete",
    credentials={
        "project_id": cloud.OWNER.project_id,
        "user_id": cloud.OWNER.user_id,
        "roles": ["member"],
        "is_admin": False,
    },
    request_id="req-1",
)

#: Steps before which a process can die: the mover's own, and the second half
#: of each transaction.
STEPS = (
    "conceal_row",
    "give",
    "charge",
    "release_ports",
    "close_consoles",
    "settle_row",
    "return_row",
    "write_record",
    "delete",
)
HALVES = ((rows, "_insert_record"), (registry, "_give_request_spec"))

Act = Callable[[cloud.CloudMover, str], Any]


class Killer:
    """Kills the process before the step of a number."""

    def __init__(self, number: int | None) -> None:
        self._number = number
        self._count = 0
        self._lock = threading.Lock()

    def watch(self, place: Any, name: str) -> None:
        """Count the calls of a function as steps."""
        original = getattr(place, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                if self._count == self._number:
                    os.kill(os.getpid(), signal.SIGKILL)
                self._count += 1
            return original(*args, **kwargs)

        setattr(place, name, watched)


class Meeting:
    """Where processes wait for each other, so that their steps overlap.

    :param places: the step before which each of them waits
    """

    def __init__(self, *places: str) -> None:
        self._places = places
        context = multiprocessing.get_context("fork")
        self._barrier: Barrier = context.Barrier(len(places))

    def each(self, play: Play, server: str, *acts: Act) -> list[Any]:
        """Run the acts at once; return their answers, and whether they met."""
        waiting = [
            play.begin(self._watched(place, act), server)
            for place, act in zip(self._places, acts, strict=True)
        ]
        return [wait() for wait in waiting]

    def _watched(self, name: str, act: Act) -> Act:
        def watched(mover: cloud.CloudMover, server: str) -> Any:
            met = []
            step = getattr(mover, name)

            def wait(*args: Any, **kwargs: Any) -> Any:
                if not met:
                    met.append(self._barrier.wait(cloud.PATIENCE))
                return step(*args, **kwargs)

            setattr(mover, name, wait)
            answer = act(mover, server)
            return {"answer": answer, "met": bool(met)}

        return watched


def forked(work: Callable[[], Any]) -> Callable[[], Any]:
    """Run something in a process of its own; call the result to wait for it.

    The call returns what the work returned, or ``killed``.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer: Any = {"value": work()}
        except BaseException:  # the parent has to hear of it
            answer = {"error": traceback.format_exc()}
        with os.fdopen(writer, "w") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)

    def wait() -> Any:
        with os.fdopen(reader) as pipe:
            text = pipe.read()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            return "killed"
        found = json.loads(text)
        if "error" in found:
            raise RuntimeError(found["error"])
        return found["value"]

    return wait


class Play:
    """The acts, each in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def start(
        self, act: Act, server: str, kill_at: int | None = None
    ) -> Callable[[], Any]:
        """Begin an act; return what waits for its end."""

        def work() -> Any:
            mover = cloud.CloudMover(self._directory)
            killer = Killer(kill_at)
            for step in STEPS:
                killer.watch(mover, step)
            for place, name in HALVES:
                killer.watch(place, name)
            return act(mover, server)

        return forked(work)

    def begin(self, act: Act, server: str) -> Callable[[], Any]:
        """Begin an act that nothing kills; return what waits for its end."""
        return forked(lambda: act(cloud.CloudMover(self._directory), server))

    def run(self, act: Act, server: str, kill_at: int | None = None) -> Any:
        """Do an act and wait for its end."""
        return self.start(act, server, kill_at)()

    def boot(self, *acts: Act) -> str:
        """Return a new server, with which something was done already."""

        def work() -> str:
            server = cloud.boot(self._directory)
            for act in acts:
                act(cloud.CloudMover(self._directory), server)
            return server

        found: str = forked(work)()
        return found

    def after(self, server: str) -> dict[str, Any]:
        """Look at a server, sweep twice, look again."""

        def work() -> dict[str, Any]:
            mover = cloud.CloudMover(self._directory)
            died = cloud.state(self._directory, server)
            sweeps = [do_sweep(mover, server) for _ in range(2)]
            swept = cloud.state(self._directory, server)
            return {"died": died, "sweeps": sweeps, "state": swept}

        found: dict[str, Any] = forked(work)()
        return found

    def state(self, server: str) -> Any:
        """Return what every store says of a server."""
        return forked(lambda: cloud.state(self._directory, server))()


def do_conceal(mover: cloud.CloudMover, server: str) -> str:
    """Conceal a server."""
    return conceal(mover, POLICY, server, WISH).result.value


def do_sweep(mover: cloud.CloudMover, server: str) -> list[list[Any]]:
    """Sweep everything; return the steps for one server."""
    report = Sweep(mover, POLICY).run()
    return [
        [done.step, done.error]
        for done in report.done
        if done.server_id == server
    ]


def do_release(mover: cloud.CloudMover, server: str) -> str:
    """Release a server."""
    return operator.release_one(mover, POLICY, server).step


def do_purge(mover: cloud.CloudMover, server: str) -> str:
    """Purge a server."""
    return operator.purge_one(mover, POLICY, server).step


def do_sweep_one(mover: cloud.CloudMover, server: str) -> list[list[Any]]:
    """Sweep one server."""
    report = Sweep(mover, POLICY).one(server)
    return [[done.step, done.error] for done in report.done]


def do_retire(mover: cloud.CloudMover, server: str) -> list[list[Any]]:
    """Sweep one server, whose time has passed."""
    report = Sweep(mover, replace(POLICY, retention=0)).one(server)
    return [[done.step, done.error] for done in report.done]


def do_late_sweep(mover: cloud.CloudMover, server: str) -> list[list[Any]]:
    """Sweep one server, as soon as it is concealed."""
    for _ in range(int(cloud.PATIENCE * 10)):
        seen = mover.look(server)
        if seen is not None and seen.hidden:
            break
        time.sleep(0.1)
    return do_sweep_one(mover, server)


def half_release(mover: cloud.CloudMover, server: str) -> None:
    """Release a server, and fail after the record."""
    mover.charge = _fail  # type: ignore[method-assign]
    try:
        do_release(mover, server)
    except RuntimeError:
        return
    raise AssertionError("it did not fail")


def _fail(*args: Any) -> None:
    raise RuntimeError("it fails here")


#: What is done at once, before which step each waits for the other, and what
#: has to be done before. The step is the first that writes: who comes later
#: must not see what the other has begun.
MEETINGS: dict[str, tuple[tuple[Act, ...], tuple[tuple[str, Act], ...]]] = {
    "two conceals": ((), 2 * (("conceal_row", do_conceal),)),
    "two sweeps settle": (
        (do_conceal,),
        2 * (("settle_row", do_sweep_one),),
    ),
    "a sweep beside a conceal": (
        (),
        (("give", do_conceal), ("settle_row", do_late_sweep)),
    ),
    "two sweeps end a release": (
        (do_conceal, do_sweep, half_release),
        2 * (("charge", do_sweep_one),),
    ),
    "two sweeps purge": (
        (do_conceal, do_sweep),
        2 * (("release_ports", do_retire),),
    ),
}

#: Act, and what has to be done before it.
ACTS: dict[str, tuple[tuple[Act, ...], Act]] = {
    "conceal": ((), do_conceal),
    "settle": ((do_conceal,), do_sweep),
    "release": ((do_conceal, do_sweep), do_release),
    "purge": ((do_conceal, do_sweep), do_purge),
}


def deaths(play: Play) -> list[dict[str, Any]]:
    """Kill each act before each of its steps, then sweep."""
    found = []
    for name, (before, act) in ACTS.items():
        for number in range(100):
            server = play.boot(*before)
            ended = play.run(act, server, number)
            found.append(
                {
                    "act": name,
                    "number": number,
                    "ended": ended,
                    "earlier": len(before),
                    **play.after(server),
                }
            )
            if ended != "killed":
                break
    return found


def meetings(play: Play) -> dict[str, Any]:
    """Have two do things at once, each waiting for the other in a step."""
    found = {}
    for name, (before, parts) in MEETINGS.items():
        server = play.boot(*before)
        places, acts = zip(*parts, strict=True)
        answers = Meeting(*places).each(play, server, *acts)
        found[name] = {"answers": answers, **play.after(server)}
    return found


def races(play: Play, many: int) -> dict[str, Any]:
    """Let many do the same at once."""
    server = play.boot()
    waiting = [play.start(do_conceal, server) for _ in range(many)]
    beside = [play.start(do_sweep, server) for _ in range(2)]
    answers = [wait() for wait in waiting]
    swept = [wait() for wait in beside]
    concealed = play.state(server)
    waiting = [play.start(do_sweep, server) for _ in range(4)]
    swept += [wait() for wait in waiting]
    settled = play.state(server)
    ended = play.run(do_release, server, 3)
    half = play.state(server)
    waiting = [play.start(do_sweep, server) for _ in range(4)]
    following = [wait() for wait in waiting]
    return {
        "answers": answers,
        "swept": swept + following,
        "ended": ended,
        "half": half,
        "following": following,
        "concealed": concealed,
        "settled": settled,
        "released": play.state(server),
    }


def main(directory: str, many: str, *urls: str) -> None:
    """Play everything on databases at these URLs; print what was found.

    :param many: how many do the same at once; 0 where the databases take
        one writer only
    """
    place = Path(directory)
    named = dict(zip(cloud.DATABASES, urls, strict=True))
    cloud.configure(place, named)
    print(forked(lambda: cloud.create(named))(), file=sys.stderr)
    # once, instead of in every child
    orm.configure_mappers()
    play = Play(place)
    found: dict[str, Any] = {
        "meetings": meetings(play),
        "deaths": deaths(play),
    }
    if int(many):
        found["races"] = races(play, int(many))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
