# SPDX-License-Identifier: Apache-2.0
"""The filter in the pipeline of the compute API, step by step.

It knows WSGI and the ports of the engine, and neither Nova nor files.
"""

from __future__ import annotations

from state_policy.wsgi.filter import Filter
from state_policy.wsgi.options import Mode, Options

__all__ = ["Filter", "Mode", "Options"]
