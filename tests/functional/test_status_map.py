# SPDX-License-Identifier: Apache-2.0
"""The statuses that users see, against the installed Nova's own table."""

from nova.api.openstack import common
from nova.compute import task_states, vm_states

from state_policy.engine.analysis.status import STATUS, status_of
from state_policy.engine.states import TASK_STATES, VM_STATES


def test_every_state_has_novas_status():
    for vm_state in VM_STATES:
        for task_state in (None, *TASK_STATES):
            assert status_of(vm_state, task_state) == (
                common.status_from_state(vm_state, task_state or "default")
            )


def test_nova_knows_no_other_state():
    assert set(STATUS) == set(common._STATE_MAP)
    assert set(VM_STATES) <= texts(vm_states)
    assert set(TASK_STATES) <= texts(task_states)


def texts(module):
    return {found for found in vars(module).values() if isinstance(found, str)}
