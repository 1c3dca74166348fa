# SPDX-License-Identifier: Apache-2.0
"""Databases that are not there, as the driver of MySQL meets them."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Iterator

import nova.conf
import pytest
from nova import context, thread_pool_factory
from oslo_config import fixture as config_fixture
from oslo_messaging import conffixture

pytest.importorskip("pymysql", reason="needs PyMySQL, as a cloud has it")

from state_policy.drivers.nova.breaker import CellDownError
from state_policy.drivers.nova.cells import BusyError, Cell, Cells

BUDGET = 1.0
#: What a busy machine may add.
SLACK = 5.0


@pytest.fixture(autouse=True)
def config() -> Iterator[config_fixture.Config]:
    """Few tries, for what hangs outlives a test; the default is ten."""
    messaging = conffixture.ConfFixture(nova.conf.CONF)
    messaging.setUp()
    found = config_fixture.Config(nova.conf.CONF)
    found.setUp()
    found.config(group="database", max_retries=0, retry_interval=1)
    yield found
    found.cleanUp()
    messaging.cleanUp()
    context.CELL_CACHE.clear()


def cell(port: int) -> Cell:
    """Return a cell whose database is at a port of this machine."""
    return Cell(
        1,
        str(uuid.uuid4()),
        "cell1",
        f"mysql+pymysql://nova:secret@127.0.0.1:{port}/nova",
        "none:///",
    )


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and says nothing."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        found.listen()
        yield found


def fails(cells: Cells, where: Cell) -> tuple[str, float]:
    """Return how a reading fails, and after how many seconds."""
    began = time.monotonic()
    with pytest.raises(CellDownError) as caught:
        cells.read(where, lambda connection: connection.scalar("SELECT 1"))
    assert "secret" not in str(caught.value)
    return str(caught.value), time.monotonic() - began


def test_refused() -> None:
    cells, where = Cells(BUDGET, 60), cell(free_port())
    told, seconds = fails(cells, where)
    assert told == "it is not reachable: DBConnectionError"
    assert seconds < BUDGET + SLACK
    assert cells.hanging() == 0
    assert fails(cells, where)[0] == "it did not answer a moment ago"


def test_refused_and_tried_again_for_long(
    config: config_fixture.Config,
) -> None:
    """oslo.db sleeps and tries again inside; that is no reason to wait."""
    config.config(group="database", max_retries=3)
    cells, where = Cells(BUDGET, 60), cell(free_port())
    told, seconds = fails(cells, where)
    assert told == "no answer in 1 s"
    assert seconds < BUDGET + SLACK
    assert cells.hanging() == 1
    told, seconds = fails(cells, where)
    assert (told, seconds < BUDGET) == ("it did not answer a moment ago", True)
    wait_for_the_end(cells)


def test_silent(silent: socket.socket) -> None:
    cells, where = Cells(BUDGET, 60), cell(silent.getsockname()[1])
    told, seconds = fails(cells, where)
    assert told == "no answer in 1 s"
    assert seconds < BUDGET + SLACK
    assert cells.hanging() == 1
    told, seconds = fails(cells, where)
    assert (told, seconds < BUDGET) == ("it did not answer a moment ago", True)
    connection, _ = silent.accept()
    connection.close()
    silent.close()
    wait_for_the_end(cells)


def test_others_answer(silent: socket.socket) -> None:
    """One cell that hangs and one that refuses beside one that is well."""
    cells = Cells(BUDGET, 60)
    well = Cell(3, str(uuid.uuid4()), "cell3", "sqlite://", "none:///")
    hanging, refusing = cell(silent.getsockname()[1]), cell(free_port())
    answers = cells.each(
        [one.mapping() for one in (hanging, refusing, well)], _ask
    )
    assert answers.found == {well.uuid: 1}
    assert set(answers.failed) == {hanging.uuid, refusing.uuid}
    assert (
        cells.read(well, lambda c: c.exec_driver_sql("SELECT 2").scalar()) == 2
    )
    connection, _ = silent.accept()
    connection.close()
    silent.close()
    wait_for_the_end(cells)


def test_no_thread_is_free() -> None:
    """It is not the cell that is to blame, and it is asked again at once."""
    well = Cell(3, str(uuid.uuid4()), "cell3", "sqlite://", "none:///")
    cells = Cells(BUDGET, 60)
    gate = threading.Event()
    others = [
        thread_pool_factory.spawn_on(
            thread_pool_factory.ExecutorType.SCATTER_GATHER, gate.wait, 30
        )
        for _ in range(nova.conf.CONF.cell_worker_thread_pool_size)
    ]
    try:
        with pytest.raises(BusyError):
            cells.call(well.mapping(), _ask)
        assert cells.hanging() == 0
    finally:
        gate.set()
    for other in others:
        other.result(30)
    assert cells.call(well.mapping(), _ask) == 1


def _ask(targeted: context.RequestContext) -> int:
    from state_policy.drivers.nova import cells

    found: int = cells.connected(
        targeted, lambda c: c.exec_driver_sql("SELECT 1").scalar()
    )
    return found


def wait_for_the_end(cells: Cells) -> None:
    """Wait until nothing hangs, so that no thread outlives the test."""
    until = time.monotonic() + 60
    while cells.hanging() and time.monotonic() < until:
        time.sleep(0.1)
    assert cells.hanging() == 0
