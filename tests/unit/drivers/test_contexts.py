# SPDX-License-Identifier: Apache-2.0
"""The context of the request outlives what is done in a cell."""

import pytest
from nova import context as nova_context
from nova import objects
from oslo_context import context as oslo_context
from oslo_utils import uuidutils

from state_policy.drivers.nova import cells
from state_policy.drivers.nova.moving import contexts


@pytest.fixture
def mapping(monkeypatch):
    """A cell that is not connected to."""

    def name(context, cell):
        context.cell_uuid = cell.uuid

    monkeypatch.setattr(nova_context, "set_target_cell", name)
    found = objects.CellMapping(uuid=uuidutils.generate_uuid())
    monkeypatch.setattr(contexts, "cell_mapping_of", lambda _: found)


def test_the_log_knows_whose_request_it_is(mapping):
    """Nova's ``target_cell`` leaves its own context in the store."""
    request = nova_context.RequestContext(
        "someone", "a project", is_admin=False
    )
    with contexts.cell_of("a server") as cell:
        assert cell.project_id is None
        assert oslo_context.get_current() is not request
    assert oslo_context.get_current() is request


def test_after_an_error_too(mapping):
    request = nova_context.RequestContext(
        "someone", "a project", is_admin=False
    )
    with pytest.raises(ZeroDivisionError), contexts.cell_of("a server"):
        _ = 1 / 0
    assert oslo_context.get_current() is request


def test_reading_a_cell_leaves_it_too(mapping):
    request = nova_context.RequestContext(
        "someone", "a project", is_admin=False
    )
    cell = contexts.cell_mapping_of("a server")
    found = cells.Cells().call(cell, lambda context: context.is_admin)
    assert found is True
    assert oslo_context.get_current() is request
