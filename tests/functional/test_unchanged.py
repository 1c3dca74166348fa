# SPDX-License-Identifier: Apache-2.0
"""With an empty rule file Nova answers as if the filter were not there.

A run of requests goes twice through one Nova: by the application with the
filter, for one project, and by one without it, for another. What comes out
is compared byte for byte, headers and their order included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from oslo_utils.fixture import uuidsentinel

from tests.functional import base
from tests.functional.harness import paste, surgery
from tests.functional.harness.sameness import Normal

ABSENT = uuidsentinel.absent
EVENT = {"name": "network-vif-plugged", "server_uuid": ABSENT}

RESET = {"os-resetState": {"state": "error"}}

#: (method, path, body, more of ``ask``); ``{id}`` is the run's server,
#: ``{ID}`` the same in capitals, ``{foreign}`` a server of somebody else.
#: ``who`` names what differs from the owner.
RUN: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
    ("GET", "/servers", None, {}),
    ("GET", "/servers/detail?sort_key=created_at", None, {}),
    ("GET", "/servers/{id}", None, {}),
    ("GET", "/servers/{ID}", None, {}),
    ("GET", "/servers/{id}.json", None, {}),
    ("GET", "/servers/" + ABSENT, None, {}),
    ("GET", "/servers/{foreign}", None, {}),
    ("PUT", "/servers/{id}", {"server": {"name": "renamed"}}, {}),
    ("PUT", "/servers/{id}", {"server": {"nonsense": 1}}, {}),
    ("POST", "/servers/{id}/metadata", {"metadata": {"a": "b"}}, {}),
    ("GET", "/servers/{id}/metadata", None, {}),
    ("DELETE", "/servers/{id}/metadata/a", None, {}),
    ("DELETE", "/servers/{id}/metadata/a", None, {}),
    ("PUT", "/servers/{id}/tags/blue", None, {"microversion": "2.26"}),
    ("POST", "/servers/{id}/action", {"lock": None}, {}),
    ("POST", "/servers/{id}/action", {"pause": None}, {}),
    ("POST", "/servers/{id}/action", {"unlock": None}, {}),
    ("POST", "/servers/{id}/action", {"pause": None}, {}),
    ("POST", "/servers/{id}/action", {"pause": None}, {}),
    ("POST", "/servers/{id}/action", {"unpause": None}, {}),
    ("POST", "/servers/{id}/action", b'{"reb\\u006fot":{"type":"HARD"}}', {}),
    ("POST", "/servers/{id}/action", {"os-stop": None, "pause": None}, {}),
    ("POST", "/servers/{id}/action", {"noSuchAction": None}, {}),
    ("POST", "/servers/{id}/action", b'{"os-stop": ', {}),
    ("POST", "/servers/{id}/action", b"", {}),
    ("POST", "/servers/{id}/action", {"confirmResize": None}, {}),
    ("POST", "/servers/{id}/action", {"createImage": {"name": "i"}}, {}),
    ("POST", "/servers/{id}/action", {"os-stop": None}, {"who": "reader"}),
    ("POST", "/servers/{id}/action", RESET, {}),
    ("GET", "/servers/{id}/os-instance-actions", None, {}),
    ("GET", "/servers/{id}/os-volume_attachments", None, {}),
    ("GET", "/servers/{id}/os-interface", None, {}),
    ("GET", "/servers/{id}/", None, {}),
    ("PATCH", "/servers/{id}", None, {}),
    ("GET", "/limits", None, {}),
    ("GET", "/flavors/detail", None, {}),
    ("POST", "/os-server-external-events", {"events": [EVENT]}, {}),
    ("DELETE", "/os-volumes_boot/{id}", None, {}),
    ("GET", "/servers/{id}", None, {"microversion": "2.999"}),
    ("DELETE", "/servers/{id}", None, {"who": "reader"}),
    ("DELETE", "/servers/{foreign}", None, {}),
    ("DELETE", "/servers/{id}", None, {"microversion": "nonsense"}),
    ("DELETE", "/servers/{id}", None, {}),
    ("GET", "/servers/{id}", None, {}),
    ("DELETE", "/servers/{id}", None, {}),
    ("POST", "/servers/{id}/action", {"forceDelete": None}, {}),
    ("GET", "/servers", None, {}),
)


class _Unchanged(base.NovaTestCase):
    """Sends the run twice and compares."""

    RULES = ""

    def setUp(self) -> None:
        super().setUp()
        self.plain = self.load(paste.installed().read_text())
        self.foreign = self.boot()

    def _compare(self, prefix: str, microversion: str | None) -> None:
        more = {"prefix": prefix, "microversion": microversion}
        filtered = list(self._run("a", self.api_fixture.app(), **more))
        plain = list(self._run("b", self.plain, **more))
        self.assertEqual(len(RUN) + 1, len(filtered))
        for one, other in zip(plain, filtered, strict=True):
            self.assertEqual(one, other)
        self._assert_mixed({answer[1] for answer in plain})

    def _assert_mixed(self, statuses: set[int]) -> None:
        """Say that the run met every sort of answer."""
        self.assertLessEqual({200, 202, 204, 400, 403, 404, 409}, statuses)

    def _run(
        self, name: str, app: Any, **common: Any
    ) -> Iterator[tuple[str, int, tuple[bytes, ...], bytes]]:
        """Send the run for a project of its own; yield what came back."""
        owner = replace(
            base.OWNER,
            project_id=getattr(uuidsentinel, "run_" + name).replace("-", ""),
        )
        normal = Normal()
        body = self._body(common["microversion"])
        created = self.ask(
            "POST", "/servers", body, who=owner, app=app, **common
        )
        server = created.json["server"]["id"]
        ids = {"id": server, "ID": server.upper(), "foreign": self.foreign}
        self._wait_for_state_change({"id": server}, "ACTIVE")
        yield ("POST /servers", *_written(created, normal))
        for method, path, body, more in RUN:
            roles = ("reader",) if "who" in more else owner.roles
            answer = self.ask(
                method,
                path.format(**ids),
                body,
                who=replace(owner, roles=roles),
                app=app,
                **{**common, **{k: more[k] for k in more if k != "who"}},
            )
            self.wait_for(lambda: _at_rest(server), "at rest")
            yield (f"{method} {path}", *_written(answer, normal))

    def _body(self, microversion: str | None) -> dict[str, Any]:
        networks = "none" if microversion else None
        return {"server": self._build_server("same", networks=networks)}


class TestUnchanged(_Unchanged):
    """An empty rule file, the quarantine off."""

    def test_through_v2_1(self) -> None:
        self._compare("/v2.1", None)

    def test_through_v2(self) -> None:
        self._compare("/v2", None)


class TestUnchangedWithGuard(_Unchanged):
    """An empty rule file, the quarantine on: nobody is concealed."""

    QUARANTINE = base.QUARANTINED

    def test_through_v2_1_of_today(self) -> None:
        self._compare("/v2.1", self.microversion)

    def test_through_v2(self) -> None:
        self._compare("/v2", None)


def _at_rest(server: str) -> bool:
    """Return whether nothing runs, so that both runs meet the same states."""
    row = surgery.row(server)
    if row["vm_state"] == "deleted":
        return bool(row["deleted"])
    return row["task_state"] is None


def _written(
    answer: base.Answer, normal: Normal
) -> tuple[int, tuple[bytes, ...], bytes]:
    headers = tuple(
        normal.write(f"{name}: {value}".encode())
        for name, value in answer.headers
    )
    return answer.status, headers, normal.write(answer.body)
