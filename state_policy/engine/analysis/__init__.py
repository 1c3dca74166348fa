# SPDX-License-Identifier: Apache-2.0
"""What a whole rule set does, computed exactly instead of sampled.

The decision space of one operation is finite: 12 vm_states x 43 task_states
x the regions of every other fact that its rules tell apart. Rules become
decision diagrams over it (``diagram``, ``space``, ``project``); findings,
comparisons and tables are read off the diagrams, never off samples.
"""
