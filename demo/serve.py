# SPDX-License-Identifier: Apache-2.0
"""The demonstration's API on a real socket, for curl and ``openstack``."""

from __future__ import annotations

import socketserver
import time
from collections.abc import Iterable
from typing import Any
from wsgiref import simple_server
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from demo.cloud import Cloud
from tests.functional import base
from tests.functional.harness.keystone import Person

HOST = "127.0.0.1"
#: How long the build hangs at most, in seconds.
_LONG = 30 * 24 * 3600
#: In place of Keystone's tokens: who says nothing is the owner.
TOKENS: dict[str, Person] = {
    "owner": base.OWNER,
    "operator": base.OPERATOR,
    "foreigner": base.FOREIGNER,
    "inspector": base.INSPECTOR,
}


class _Threads(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True


class _Quiet(simple_server.WSGIRequestHandler):
    """Writes one line a request."""

    def log_message(self, format: str, *args: Any) -> None:
        print("  " + format % args, flush=True)


class Tokens:
    """Takes a token for the name of a caller, as nobody should."""

    def __init__(self, app: WSGIApplication) -> None:
        self._app = app

    def __call__(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        """Add what keystonemiddleware would have added."""
        token = environ.get("HTTP_X_AUTH_TOKEN", "owner")
        person = TOKENS.get(token, base.OWNER)
        for name, value in person.headers().items():
            environ["HTTP_" + name.upper().replace("-", "_")] = value
        return self._app(environ, start_response)


def forever(cloud: Cloud, port: int) -> int:
    """Serve until interrupted; begin with one build that hangs."""
    stuck, hold = cloud.boot_held(name="stuck")
    hold.patience = _LONG
    cloud.age(stuck)
    try:
        server = simple_server.make_server(
            HOST,
            port,
            Tokens(cloud.api_fixture.app()),
            server_class=_Threads,
            handler_class=_Quiet,
        )
    except OSError as error:
        hold.release()
        print(
            f"Port {port} is not to be had ({error.strerror}); choose another "
            "with `make demo-serve PORT=18774`.",
            flush=True,
        )
        return 1
    print(_greeting(server.server_port, stuck), flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print("\nGoing down.", flush=True)
    finally:
        server.server_close()
        hold.release()
        time.sleep(0.1)
    return 0


def _greeting(port: int, stuck: str) -> str:
    url = f"http://{HOST}:{port}/v2.1"
    openstack = (
        "openstack --os-auth-type admin_token --os-token owner "
        f"--os-endpoint {url}"
    )
    return f"""
Nova listens on {url} (and on /v2); stop it with Ctrl-C.
Server {stuck} hangs in its build, for 61 minutes as Nova sees it.
The token is the caller: owner, operator, foreigner, inspector (a member of
the quarantine project). To paste:

  curl -s -H 'X-Auth-Token: owner' {url}/servers
  curl -s -H 'X-Auth-Token: owner' {url}/servers/{stuck}/allowed-actions
  curl -s -i -X DELETE -H 'X-Auth-Token: owner' {url}/servers/{stuck}
  curl -s -H 'X-Auth-Token: owner' {url}/servers
  curl -s -i -H 'X-Auth-Token: owner' {url}/servers/{stuck}
  curl -s -H 'X-Auth-Token: operator' {url}/servers/{stuck}

  {openstack} server show {stuck}
  {openstack} server delete {stuck}

(`openstack server list` asks for a Keystone, and there is none.)
"""
