# SPDX-License-Identifier: Apache-2.0
"""What a sweep, or an operator's command, did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """What was done, or in a dry run would be, with one server.

    :ivar step: ``settle``, ``purge``, ``conceal`` ...
    :ivar error: why it failed, None where it did not
    :ivar acted: False where it is only said: in a dry run, and for what
        rules decide while they are not enforced
    """

    server_id: str
    step: str
    why: str
    error: str | None = None
    acted: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """What one sweep did, and what it could not see."""

    done: tuple[Done, ...]
    unseen: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Return whether something is left to do that should not be."""
        return bool(self.unseen) or any(d.error for d in self.done)

    def joined(self, other: Report) -> Report:
        """Return both in one; what neither could see is named once."""
        return Report(
            (*self.done, *other.done),
            tuple(sorted({*self.unseen, *other.unseen})),
        )
