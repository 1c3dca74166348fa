# SPDX-License-Identifier: Apache-2.0
"""The operations that compute's API offers on one server.

Names, classes and gates are ours to keep stable: rules are written with
them. Methods, paths and actions are Nova's (nova.api.openstack.compute.routes,
34.0.0); a functional test walks the installed Nova and fails on a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Operation:
    """What a request asks of one server.

    :ivar name: the name that rules use, as ``server:<name>``
    :ivar classes: rule classes whose defaults all apply; two for rebuild
    :ivar gate: the policy of Nova that decides whether the caller may, but
        for requests about which it asks the one of ``INSTEAD``
    :ivar method: HTTP method
    :ivar path: Nova's route, ``{server}`` standing for the server's id and
        ``{id}`` for that of a part of it
    :ivar action: key of the body of a POST to ``/action``, or None
    """

    name: str
    classes: tuple[str, ...]
    gate: str
    method: str
    path: str
    action: str | None = None

    @property
    def gates(self) -> tuple[str, ...]:
        """Return the policies of which Nova asks one, as a request has it."""
        other = INSTEAD.get(self.name)
        return (self.gate,) if other is None else (self.gate, other)


#: The policies that Nova asks instead of an operation's gate: about a move to
#: a host that the caller names, and about another volume in one's place.
INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "migrate": "os_compute_api:os-migrate-server:migrate:host",
        "live_migrate": "os_compute_api:os-migrate-server:migrate_live:host",
        "update_volume": "os_compute_api:os-volumes-attachments:swap",
    }
)

#: Suffixes that a rule of any operation may have, beside those below.
COMMON_SUFFIXES = ("wait", "brake", "escalate", "evidence")

#: The operations whose server may be moved away instead.
QUARANTINABLE = frozenset({"delete", "force_delete"})

#: Operations whose rules, suffix by suffix, default to another's.
FOLLOWS: Mapping[str, str] = MappingProxyType({"force_delete": "delete"})


def suffixes(name: str) -> tuple[str, ...]:
    """Return the suffixes that rules of the operation may have."""
    if name in QUARANTINABLE:
        return (*COMMON_SUFFIXES, "quarantine")
    return COMMON_SUFFIXES


# name | classes | gate | method | path | action
_TABLE = """
delete | destroy | os_compute_api:servers:delete | DELETE | /servers/{server} |
show | read | os_compute_api:servers:show | GET | /servers/{server} |
update | metadata | os_compute_api:servers:update | PUT | /servers/{server} |
add_fixed_ip | network | os_compute_api:os-multinic:add | POST | /servers/{server}/action | addFixedIp
add_floating_ip | network | os_compute_api:os-floating-ips:add | POST | /servers/{server}/action | addFloatingIp
add_security_group | network | os_compute_api:os-security-groups:add | POST | /servers/{server}/action | addSecurityGroup
change_password | power | os_compute_api:os-admin-password | POST | /servers/{server}/action | changePassword
confirm_resize | move | os_compute_api:servers:confirm_resize | POST | /servers/{server}/action | confirmResize
create_backup | snapshot | os_compute_api:os-create-backup | POST | /servers/{server}/action | createBackup
create_image | snapshot | os_compute_api:servers:create_image | POST | /servers/{server}/action | createImage
evacuate | move | os_compute_api:os-evacuate | POST | /servers/{server}/action | evacuate
force_delete | destroy | os_compute_api:os-deferred-delete:force | POST | /servers/{server}/action | forceDelete
inject_network_info | network | os_compute_api:os-admin-actions:inject_network_info | POST | /servers/{server}/action | injectNetworkInfo
lock | repair | os_compute_api:os-lock-server:lock | POST | /servers/{server}/action | lock
migrate | move | os_compute_api:os-migrate-server:migrate | POST | /servers/{server}/action | migrate
get_console_output | read | os_compute_api:os-console-output | POST | /servers/{server}/action | os-getConsoleOutput
get_spice_console | console | os_compute_api:os-remote-consoles | POST | /servers/{server}/action | os-getSPICEConsole
get_serial_console | console | os_compute_api:os-remote-consoles | POST | /servers/{server}/action | os-getSerialConsole
get_vnc_console | console | os_compute_api:os-remote-consoles | POST | /servers/{server}/action | os-getVNCConsole
live_migrate | move | os_compute_api:os-migrate-server:migrate_live | POST | /servers/{server}/action | os-migrateLive
reset_state | repair | os_compute_api:os-admin-actions:reset_state | POST | /servers/{server}/action | os-resetState
start | power | os_compute_api:servers:start | POST | /servers/{server}/action | os-start
stop | power | os_compute_api:servers:stop | POST | /servers/{server}/action | os-stop
pause | power | os_compute_api:os-pause-server:pause | POST | /servers/{server}/action | pause
reboot_soft | power | os_compute_api:servers:reboot | POST | /servers/{server}/action | reboot
reboot_hard | power | os_compute_api:servers:reboot | POST | /servers/{server}/action | reboot
rebuild | disk+destroy | os_compute_api:servers:rebuild | POST | /servers/{server}/action | rebuild
remove_fixed_ip | network | os_compute_api:os-multinic:remove | POST | /servers/{server}/action | removeFixedIp
remove_floating_ip | network | os_compute_api:os-floating-ips:remove | POST | /servers/{server}/action | removeFloatingIp
remove_security_group | network | os_compute_api:os-security-groups:remove | POST | /servers/{server}/action | removeSecurityGroup
rescue | power | os_compute_api:os-rescue | POST | /servers/{server}/action | rescue
resize | move | os_compute_api:servers:resize | POST | /servers/{server}/action | resize
restore | repair | os_compute_api:os-deferred-delete:restore | POST | /servers/{server}/action | restore
resume | power | os_compute_api:os-suspend-server:resume | POST | /servers/{server}/action | resume
revert_resize | move | os_compute_api:servers:revert_resize | POST | /servers/{server}/action | revertResize
shelve | power | os_compute_api:os-shelve:shelve | POST | /servers/{server}/action | shelve
shelve_offload | power | os_compute_api:os-shelve:shelve_offload | POST | /servers/{server}/action | shelveOffload
suspend | power | os_compute_api:os-suspend-server:suspend | POST | /servers/{server}/action | suspend
trigger_crash_dump | power | os_compute_api:servers:trigger_crash_dump | POST | /servers/{server}/action | trigger_crash_dump
unlock | repair | os_compute_api:os-lock-server:unlock | POST | /servers/{server}/action | unlock
unpause | power | os_compute_api:os-pause-server:unpause | POST | /servers/{server}/action | unpause
unrescue | power | os_compute_api:os-unrescue | POST | /servers/{server}/action | unrescue
unshelve | power | os_compute_api:os-shelve:unshelve | POST | /servers/{server}/action | unshelve
show_diagnostics | read | os_compute_api:os-server-diagnostics | GET | /servers/{server}/diagnostics |
list_ips | read | os_compute_api:ips:index | GET | /servers/{server}/ips |
show_ips | read | os_compute_api:ips:show | GET | /servers/{server}/ips/{id} |
list_metadata | read | os_compute_api:server-metadata:index | GET | /servers/{server}/metadata |
create_metadata | metadata | os_compute_api:server-metadata:create | POST | /servers/{server}/metadata |
replace_metadata | metadata | os_compute_api:server-metadata:update_all | PUT | /servers/{server}/metadata |
delete_metadata | metadata | os_compute_api:server-metadata:delete | DELETE | /servers/{server}/metadata/{id} |
show_metadata | read | os_compute_api:server-metadata:show | GET | /servers/{server}/metadata/{id} |
update_metadata | metadata | os_compute_api:server-metadata:update | PUT | /servers/{server}/metadata/{id} |
list_migrations | read | os_compute_api:servers:migrations:index | GET | /servers/{server}/migrations |
abort_live_migration | move | os_compute_api:servers:migrations:delete | DELETE | /servers/{server}/migrations/{id} |
show_migration | read | os_compute_api:servers:migrations:show | GET | /servers/{server}/migrations/{id} |
force_complete_live_migration | move | os_compute_api:servers:migrations:force_complete | POST | /servers/{server}/migrations/{id}/action | force_complete
list_actions | read | os_compute_api:os-instance-actions:list | GET | /servers/{server}/os-instance-actions |
show_action | read | os_compute_api:os-instance-actions:show | GET | /servers/{server}/os-instance-actions/{id} |
list_interfaces | read | os_compute_api:os-attach-interfaces:list | GET | /servers/{server}/os-interface |
attach_interface | network | os_compute_api:os-attach-interfaces:create | POST | /servers/{server}/os-interface |
detach_interface | network | os_compute_api:os-attach-interfaces:delete | DELETE | /servers/{server}/os-interface/{id} |
show_interface | read | os_compute_api:os-attach-interfaces:show | GET | /servers/{server}/os-interface/{id} |
list_security_groups | read | os_compute_api:os-security-groups:list | GET | /servers/{server}/os-security-groups |
clear_password | metadata | os_compute_api:os-server-password:clear | DELETE | /servers/{server}/os-server-password |
show_password | read | os_compute_api:os-server-password:show | GET | /servers/{server}/os-server-password |
list_volume_attachments | read | os_compute_api:os-volumes-attachments:index | GET | /servers/{server}/os-volume_attachments |
attach_volume | disk | os_compute_api:os-volumes-attachments:create | POST | /servers/{server}/os-volume_attachments |
detach_volume | disk | os_compute_api:os-volumes-attachments:delete | DELETE | /servers/{server}/os-volume_attachments/{id} |
show_volume_attachment | read | os_compute_api:os-volumes-attachments:show | GET | /servers/{server}/os-volume_attachments/{id} |
update_volume | disk | os_compute_api:os-volumes-attachments:update | PUT | /servers/{server}/os-volume_attachments/{id} |
create_console | console | os_compute_api:os-remote-consoles | POST | /servers/{server}/remote-consoles |
list_shares | read | os_compute_api:os-server-shares:index | GET | /servers/{server}/shares |
attach_share | disk | os_compute_api:os-server-shares:create | POST | /servers/{server}/shares |
detach_share | disk | os_compute_api:os-server-shares:delete | DELETE | /servers/{server}/shares/{id} |
show_share | read | os_compute_api:os-server-shares:show | GET | /servers/{server}/shares/{id} |
delete_tags | metadata | os_compute_api:os-server-tags:delete_all | DELETE | /servers/{server}/tags |
list_tags | read | os_compute_api:os-server-tags:index | GET | /servers/{server}/tags |
replace_tags | metadata | os_compute_api:os-server-tags:update_all | PUT | /servers/{server}/tags |
delete_tag | metadata | os_compute_api:os-server-tags:delete | DELETE | /servers/{server}/tags/{id} |
show_tag | read | os_compute_api:os-server-tags:show | GET | /servers/{server}/tags/{id} |
add_tag | metadata | os_compute_api:os-server-tags:update | PUT | /servers/{server}/tags/{id} |
show_topology | read | compute:server:topology:index | GET | /servers/{server}/topology |
"""


def _read(table: str) -> Mapping[str, Operation]:
    found = {}
    for line in table.strip().splitlines():
        name, classes, gate, method, path, action = (
            part.strip() for part in line.split("|")
        )
        found[name] = Operation(
            name, tuple(classes.split("+")), gate, method, path, action or None
        )
    return MappingProxyType(found)


#: Every live operation by name, in the order of the documentation.
OPERATIONS: Mapping[str, Operation] = _read(_TABLE)

#: Every class that has a default rule of its own, in a stable order.
CLASSES: tuple[str, ...] = tuple(
    sorted({cls for op in OPERATIONS.values() for cls in op.classes})
)

#: Classes whose default does not follow ``class:any``.
UNGOVERNED = frozenset({"read"})
