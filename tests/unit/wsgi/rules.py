# SPDX-License-Identifier: Apache-2.0
"""Filters over servers in memory, with rules as a deployer writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from state_policy.drivers.memory import Driver, MemoryServer
from state_policy.effects.deny import Deny
from state_policy.engine.decision import Verdict
from state_policy.engine.explaining import Explainer
from state_policy.engine.facts import Age
from state_policy.engine.ports.effects import Effect, Parts
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import load
from state_policy.wsgi import Filter, Mode, Options
from state_policy.wsgi.allowed import AllowedActions
from state_policy.wsgi.events import Events
from state_policy.wsgi.explain import Conflicts
from state_policy.wsgi.guard import Guard
from state_policy.wsgi.judge import Judge
from state_policy.wsgi.record import Recorder
from tests.unit.wsgi.requests import SERVER, Cloud

FACTS: Mapping[str, Any] = {
    "server.vm_state": "active",
    "server.task_state": None,
    "server.power_state": "running",
    "server.launched": True,
    "server.locked": False,
    "server.host_up": True,
    "server.cell_up": True,
    "server.state_age": Age(3600.0),
    "server.hypervisor": "secret-hypervisor",
    "server.host": "secret-host",
}


def rules(text: str) -> RuleSet:
    """Return the rule set of a policy file's text."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "policy.yaml"
        file.write_text(text)
        return load([file]).prepare()


def driver(
    servers: Iterable[MemoryServer] = (), facts: Any = None, **more: Any
) -> Driver:
    """Return a driver with one server of the owner, if none are given."""
    return Driver(
        tuple(servers)
        or (MemoryServer(SERVER, facts={**FACTS, **(facts or {})}),),
        **more,
    )


def make(
    text: str,
    reader: Driver,
    *,
    app: Any = None,
    shadow: str | None = None,
    mode: str = "enforce",
    projects: tuple[str, ...] = (),
    effects: Mapping[Verdict, Effect] | None = None,
    refuse_unknown: bool = False,
    disabled_by: Path | None = None,
    max_body: int = 5000,
) -> Filter:
    """Return a filter."""
    found = rules(text)
    tried = rules(shadow) if shadow is not None else None
    app = app or Cloud()
    parts = Parts(
        reader, reader.answers, reader.mover, lambda: found, SimpleNamespace()
    )
    recorder = Recorder(mode)
    return Filter(
        app,
        reader,
        reader.answers,
        Judge(
            reader,
            lambda: found,
            (lambda: tried) if tried else None,
            refuse_unknown=refuse_unknown,
        ),
        {Verdict.DENY: Deny(parts), **(effects or {})},
        recorder,
        Options(Mode(mode), max_body, disabled_by),
        Guard(projects) if projects else None,
        Events(app, reader, reader.mover, recorder, projects, max_body)
        if reader.mover
        else None,
        Conflicts(reader, Explainer(reader, parts.rules), recorder, 30),
        AllowedActions(
            reader, reader.answers, parts.rules, refuse_unknown=refuse_unknown
        ),
    )
