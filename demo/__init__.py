# SPDX-License-Identifier: Apache-2.0
"""The main job, told and checked on real Nova.

``python -m demo`` starts Nova's API, conductor, scheduler, compute (with
Nova's fake hypervisor) and placement in this process, on SQLite, with the
filter in both pipelines of Nova's own paste file. It tells a story in plain
sentences and checks each of them; the exit code is 0 only if everything came
out as told. ``python -m demo --serve`` leaves the API listening.
"""
