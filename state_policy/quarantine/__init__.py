# SPDX-License-Identifier: Apache-2.0
"""Moving servers into a project of the operators', and out of it again.

A server leaves its owner's sight, quota and server group at once and keeps
running what it runs. Everything here goes through the driver's port
(``state_policy.engine.ports.moving``).
"""
