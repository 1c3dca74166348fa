# SPDX-License-Identifier: Apache-2.0
"""Exit codes of ``state-policy``: a contract with scripts and CI."""

from __future__ import annotations

from typing import Final

#: All is well.
FINE: Final = 0
#: Something was found, a test failed, or the command could not do its work.
FINDINGS: Final = 1
#: The command line or the configuration is wrong.
USAGE: Final = 2
#: The rules do not load.
INVALID_RULES: Final = 3


class CommandError(Exception):
    """A command cannot go on; the text says why, in one line.

    :ivar exit_code: what the process exits with
    """

    def __init__(self, reason: str, exit_code: int = FINDINGS) -> None:
        super().__init__(reason)
        self.exit_code = exit_code
