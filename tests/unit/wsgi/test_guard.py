# SPDX-License-Identifier: Apache-2.0
"""Concealed servers look absent, and their events arrive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.engine.ports.reading import Location
from state_policy.wsgi import guard
from state_policy.wsgi.doors import address
from tests.unit.wsgi.requests import (
    ADMIN,
    FOREIGNER,
    INSPECTOR,
    OWNER,
    SERVER,
    Cloud,
    action,
    ask,
    environ,
)
from tests.unit.wsgi.rules import driver, make

PLAIN = "5c1e6f0c-0000-4d5e-8b8e-1f2a3b4c5d6e"


def concealed(mover: Any = None) -> Driver:
    """Return a driver with a server in quarantine and one that is not."""
    return driver(
        [MemoryServer(SERVER, project_id="q"), MemoryServer(PLAIN)],
        mover=mover,
    )


@pytest.mark.parametrize("caller", [OWNER, FOREIGNER])
@pytest.mark.parametrize(
    "path",
    [
        f"/servers/{SERVER}",
        f"/servers/{SERVER}\n",
        f"/p1/servers/{SERVER}/ips".replace("p1", SERVER),
        f"/servers/{SERVER}/os-brand-new/1",
        f"/os-volumes_boot/{SERVER}",
        f"/servers/{SERVER.upper()}",
        f"/servers/{SERVER} ",
    ],
)
def test_hidden(caller: Any, path: str) -> None:
    app = Cloud()
    found = make("", concealed(), app=app, projects=("q",))
    answer = ask(found, environ("GET", path, caller=caller))
    # The cloud was asked about a server that does not exist ...
    (seen,) = app.seen
    asked, given = address(seen["PATH_INFO"]), address(path)
    assert asked is not None and given is not None
    assert asked.shape == given.shape
    assert asked.project_id == given.project_id
    assert asked.server_id.lower() != SERVER
    # ... and the client hears of its own.
    assert answer.body == f"cloud: {path}".encode()
    assert answer.header("Content-Length") == str(len(answer.body))


def test_hidden_keeps_capitals() -> None:
    app = Cloud()
    found = make("", concealed(), app=app, projects=("q",))
    ask(found, environ("GET", f"/servers/{SERVER.upper()}"))
    path = app.seen[0]["PATH_INFO"]
    assert path.removeprefix("/servers/").isupper()


@pytest.mark.parametrize("caller", [ADMIN, INSPECTOR])
def test_not_hidden_from(caller: Any) -> None:
    app = Cloud()
    found = make("", concealed(), app=app, projects=("q",))
    ask(found, environ("GET", caller=caller))
    assert app.seen[0]["PATH_INFO"] == f"/servers/{SERVER}"


def test_rules_do_not_matter_to_the_guard(tmp_path: Path) -> None:
    for more in ({"mode": "audit"}, {"disabled_by": tmp_path}):
        app = Cloud()
        found = make(
            '"class:any": "!"', concealed(), app=app, projects=("q",), **more
        )
        answer = ask(found, action("os-stop"))
        assert answer.code == 202
        assert app.seen[0]["PATH_INFO"] != f"/servers/{SERVER}/action"
        assert app.bodies == [b'{"os-stop": null}']


def test_one_look_serves_guard_and_rules() -> None:
    reader = concealed()
    found = make('"class:any": "!"', reader, projects=("q",))
    path = f"/servers/{PLAIN}/action"
    assert ask(found, environ("POST", path, {"os-stop": None})).code == 403
    assert [what for what, _ in reader.asked].count("locate") == 1


class Folding(Driver):
    """Finds servers as MariaDB's ``uca1400_ai_ci`` does."""

    def locate(self, server_id: str) -> Location | None:
        return super().locate(
            server_id.replace("\xe6", "ae").replace("\xf0", "d")
        )


ASH = "ae1e6f0c-9a53-4d5e-8b8e-1f2a3b4caeae"


@pytest.mark.parametrize(
    "server_id", [ASH.replace("ae", "\xe6"), ASH.replace("d", "\xf0")]
)
def test_what_only_the_database_takes_for_an_id(server_id: str) -> None:
    path = f"/servers/{server_id}/action"
    for projects, project in ((("q",), "q"), ((), OWNER["project_id"])):
        reader = Folding([MemoryServer(ASH, project_id=project)])
        app = Cloud()
        found = make('"class:any": "!"', reader, app=app, projects=projects)
        answer = ask(found, environ("POST", path, {"os-stop": None}))
        if projects:  # asked of one that does not exist
            (seen,) = app.seen
            assert seen["PATH_INFO"] != path
            assert server_id not in seen["PATH_INFO"]
        else:
            assert (answer.code, app.seen) == (403, [])


@pytest.mark.parametrize(
    "path",
    [
        "/servers/detail",
        "/servers",
        "/os-assisted-volume-snapshots",
        f"/os-assisted-volume-snapshots/{SERVER}",
        f"/servers/{SERVER}x",
    ],
)
def test_not_looked_at(path: str) -> None:
    reader = concealed()
    app = Cloud()
    found = make("", reader, app=app, projects=("q",))
    ask(found, environ("GET", path))
    assert app.seen[0]["PATH_INFO"] == path
    assert all(what[1] != SERVER for what in reader.asked)


def test_a_project_of_the_same_name_stays() -> None:
    path = f"/{SERVER}/servers/{SERVER}"
    found = address(path)
    assert found is not None
    app = Cloud()
    ask(guard.absent(app, found), environ("GET", path))
    head, _, tail = app.seen[0]["PATH_INFO"].rpartition("/servers/")
    assert head == f"/{SERVER}" and tail != SERVER


# -- events -------------------------------------------------------------------


class Mover:
    """Keeps what it is given to deliver."""

    def __init__(self, fails: bool = False) -> None:
        self.delivered: list[tuple[str, Any]] = []
        self.fails = fails

    def deliver_events(self, server_id: str, events: Any) -> None:
        """Take events."""
        if self.fails:
            raise RuntimeError("no host")
        self.delivered.append((server_id, list(events)))


class EventCloud:
    """Answers as Nova does: 404 for servers that are in no list."""

    status = "207 Multi-Status"

    def __init__(self, known: tuple[str, ...] = (PLAIN,)) -> None:
        self.known = known
        self.bodies: list[bytes] = []

    def __call__(self, request: Any, start_response: Any) -> list[bytes]:
        """Answer."""
        body = request["wsgi.input"].read()
        self.bodies.append(body)
        events = json.loads(body)["events"]
        for event in events:
            there = event["server_uuid"] in self.known
            event["code"] = 200 if there else 404
            event["status"] = "completed" if there else "failed"
        content = json.dumps({"events": events}).encode()
        start_response(
            self.status,
            [
                ("Content-Length", str(len(content))),
                ("X-Compute-Request-Id", "req-7"),
            ],
        )
        return [content]


def event(server_id: str, tag: str = "port") -> dict[str, str]:
    """Return an event as Neutron sends it."""
    return {
        "name": "network-vif-plugged",
        "server_uuid": server_id,
        "status": "completed",
        "tag": tag,
    }


def send(
    mover: Mover, *events: Any, app: Any = None, path: str = ""
) -> tuple[Any, Any]:
    """Send events; return the answer and what answered first."""
    app = app or EventCloud()
    found = make("", concealed(mover), app=app, projects=("q",))
    request = environ(
        "POST",
        path or "/os-server-external-events",
        {"events": list(events)},
        caller=ADMIN,
    )
    return ask(found, request), app


@pytest.mark.parametrize(
    "path",
    [
        "/os-server-external-events",
        "/os-server-external-events\n",
        "/0a/os-server-external-events",
    ],
)
def test_events_of_concealed_servers_are_delivered(path: str) -> None:
    mover = Mover()
    answer, app = send(mover, event(SERVER), path=path)
    assert mover.delivered == [(SERVER, [event(SERVER)])]
    assert answer.status == "200 OK"
    assert answer.json == {"events": [{**event(SERVER), "code": 200}]}
    assert answer.header("Content-Length") == str(len(answer.body))
    assert answer.header("X-Compute-Request-Id") == "req-7"
    assert json.loads(app.bodies[0]) == {"events": [event(SERVER)]}


def test_other_events_keep_their_answer() -> None:
    mover = Mover()
    gone = "9c1e6f0c-0000-4d5e-8b8e-1f2a3b4c5d6e"
    answer, _ = send(mover, event(PLAIN), event(gone), event(SERVER, "b"))
    assert answer.code == 207
    assert [e["code"] for e in answer.json["events"]] == [200, 404, 200]
    assert [e["status"] for e in answer.json["events"]] == [
        "completed",
        "failed",
        "completed",
    ]
    assert mover.delivered == [(SERVER, [event(SERVER, "b")])]


def test_events_of_one_server_are_delivered_together() -> None:
    mover = Mover()
    send(mover, event(SERVER, "a"), event(SERVER, "b"))
    assert mover.delivered == [
        (SERVER, [event(SERVER, "a"), event(SERVER, "b")])
    ]


def test_undeliverable_events_keep_their_answer() -> None:
    answer, _ = send(Mover(fails=True), event(SERVER))
    assert answer.code == 207
    assert answer.json["events"][0]["code"] == 404


def test_only_what_nova_accepted_is_delivered() -> None:
    class Refusing(EventCloud):
        status = "403 Forbidden"

    mover = Mover()
    answer, _ = send(mover, event(SERVER), app=Refusing())
    assert (answer.code, mover.delivered) == (403, [])


@pytest.mark.parametrize("body", [b"", b"{", b'{"events": 1}', b"[[]]"])
def test_bodies_that_are_no_events_go_on(body: bytes) -> None:
    app = Cloud()
    mover = Mover()
    found = make("", concealed(mover), app=app, projects=("q",))
    request = environ("POST", "/os-server-external-events", body)
    assert ask(found, request).code == 202
    assert (app.bodies, mover.delivered) == ([body], [])


def test_other_methods_are_not_events() -> None:
    app = Cloud()
    found = make("", concealed(Mover()), app=app, projects=("q",))
    assert ask(found, environ("GET", "/os-server-external-events")).code == 202
