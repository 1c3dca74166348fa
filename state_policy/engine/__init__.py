# SPDX-License-Identifier: Apache-2.0
"""Decisions: pure, total, standard library only.

Nothing here reads a file, a database or a clock. Whoever calls the engine
brings the facts and the time.
"""
