# SPDX-License-Identifier: Apache-2.0
"""Tells what happens, and stops where something came out otherwise."""

from __future__ import annotations

import textwrap
import time
from typing import Any, TextIO


class DifferenceError(AssertionError):
    """A step did not end as the story says."""


class Narrator:
    """Writes sentences and compares what they say with what is.

    :ivar checks: how many comparisons held
    """

    def __init__(self, out: TextIO) -> None:
        self.checks = 0
        self._out = out
        self._began = time.monotonic()
        self._chapter = 0

    def chapter(self, title: str) -> None:
        """Begin a part of the story."""
        self._chapter += 1
        passed = time.monotonic() - self._began
        self._write(f"\n{self._chapter}. {title}   [{passed:.0f} s]\n")

    def tell(self, sentence: str) -> None:
        """Say something that is not checked."""
        self._write(
            textwrap.fill(
                sentence, 78, initial_indent="   ", subsequent_indent="   "
            )
            + "\n"
        )

    def quote(self, text: str) -> None:
        """Show a text as the API or a command gave it."""
        for line in text.splitlines():
            self._write(
                textwrap.fill(
                    line,
                    76,
                    initial_indent="     > ",
                    subsequent_indent="     > ",
                )
                + "\n"
            )

    def check(self, sentence: str, wanted: Any, found: Any) -> None:
        """Say something and stop unless it is so.

        :raises DifferenceError: if ``found`` is not ``wanted``
        """
        if found != wanted:
            raise DifferenceError(
                f"{sentence} Expected {wanted!r}, found {found!r}."
            )
        self.checks += 1
        self._write(
            textwrap.fill(
                sentence,
                78,
                initial_indent="   ok  ",
                subsequent_indent="       ",
            )
            + "\n"
        )

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
