# SPDX-License-Identifier: Apache-2.0
"""``python -m demo [--serve]``."""

from __future__ import annotations

import argparse
import sys
import time

from demo.narrator import Narrator


def main() -> int:
    """Tell the story, or serve the cloud; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo")
    parser.add_argument(
        "--serve",
        action="store_true",
        help="leave the API listening on 127.0.0.1 instead",
    )
    parser.add_argument("--port", type=int, default=8774)
    options = parser.parse_args()
    began = time.monotonic()
    print("Starting Nova in this process ...", flush=True)
    # Only now: it takes some seconds.
    from demo import cloud, serve, story

    with cloud.running() as running:
        if options.serve:
            return serve.forever(running, options.port)
        say = Narrator(sys.stdout)
        try:
            story.Story(running, say).run()
        except AssertionError as e:
            print(f"\nIt came out otherwise. {e}")
            return 1
    seconds = time.monotonic() - began
    print(
        f"\nEach of {say.checks} steps came out as told, in {seconds:.0f} s."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
