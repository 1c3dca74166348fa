# SPDX-License-Identifier: Apache-2.0
"""A MariaDB of Debian's package, for one test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pymysql

#: The second has the one program that the first one's set-up needs.
PACKAGES = ("mariadb-server-core", "mariadb-client-core")
PROGRAMS = ("mariadbd", "mariadb-install-db", "my_print_defaults")

#: Seconds that a busy machine needs to start it.
PATIENCE = 120

#: Seconds for a package that has to be fetched, by command. A network that
#: is not there is given up soon.
FETCHING = 300
APT = (
    "apt-get",
    "-o",
    "Acquire::Retries=0",
    "-o",
    "Acquire::http::Timeout=15",
    "-o",
    "Acquire::https::Timeout=15",
    "-o",
    "DPkg::Lock::Timeout=60",
)


class NotThereError(Exception):
    """There is no MariaDB, and it cannot be had; the text says why."""


def install() -> None:
    """Have the server's programs, from Debian's packages if need be.

    :raises NotThereError: where they cannot be had
    """
    lacking = _lacking()
    if not lacking:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise NotThereError(f"no {lacking}, and no root with apt to install")
    for words in (
        ("update",),
        ("install", "-y", "--no-install-recommends", *PACKAGES),
    ):
        _apt(*words)
    lacking = _lacking()
    if lacking:
        raise NotThereError(f"{' '.join(PACKAGES)} brings no {lacking}")


def _lacking() -> str:
    return ", ".join(name for name in PROGRAMS if not shutil.which(name))


def _apt(*words: str) -> None:
    """Run apt, which asks nothing and waits for nothing.

    :raises NotThereError: where it fails or does not come to an end
    """
    try:
        done = subprocess.run(
            (*APT, *words),
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCHING,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotThereError(f"apt-get {words[0]}: {error}") from error
    if done.returncode:
        raise NotThereError(
            f"apt-get {words[0]} failed: {done.stderr.strip()[-300:]}"
        )


class MariaDB:
    """A server of its own, on a socket in a directory of its own."""

    def __init__(self) -> None:
        install()
        # a socket's path must be short
        self.directory = Path(tempfile.mkdtemp(prefix="mariadb-"))
        self.socket = self.directory / "socket"
        self._data = self.directory / "data"
        self._run(
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self._data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            f"--user={self._user()}",
        )
        self._server = subprocess.Popen(
            [
                "mariadbd",
                "--no-defaults",
                f"--datadir={self._data}",
                f"--socket={self.socket}",
                "--skip-networking",
                f"--user={self._user()}",
                "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=0",
                f"--pid-file={self.directory / 'pid'}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=(self.directory / "log").open("w"),
        )
        self._wait()

    def urls(self, *names: str) -> list[str]:
        """Make databases and return their URLs."""
        connection = self._connect()
        with connection, connection.cursor() as cursor:
            for name in names:
                cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8")
        return [
            f"mysql+pymysql://root@localhost/{name}?charset=utf8"
            f"&unix_socket={self.socket}"
            for name in names
        ]

    def stop(self) -> None:
        """End the server and remove its data."""
        self._server.terminate()
        self._server.wait(PATIENCE)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _user(self) -> str:
        return "root" if os.geteuid() == 0 else str(os.geteuid())

    def _run(self, *command: str) -> None:
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def _connect(self) -> pymysql.Connection[Any]:
        return pymysql.connect(unix_socket=str(self.socket), user="root")

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self._server.poll() is not None:
                log = (self.directory / "log").read_text()
                raise RuntimeError(f"mariadbd ended: {log[-500:]}")
            try:
                self._connect().close()
            except pymysql.err.OperationalError:
                time.sleep(0.2)
            else:
                return
        self.stop()
        raise RuntimeError("mariadbd did not start in time")
