# SPDX-License-Identifier: Apache-2.0
"""The composition root: everything is put together here, and nowhere else.

``filter_factory`` is what a paste file names. It builds the whole filter or
raises one error that says everything that is wrong: the API then does not
start. A pipeline that has the filter builds one of its own; they share
nothing but Nova's databases.

Nova is imported by the driver, when the filter is built and not before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast
from wsgiref.types import WSGIApplication

import stevedore
from oslo_config import cfg

from state_policy import conf as our_conf
from state_policy.conf import Settings, SettingsError
from state_policy.engine.decision import Verdict
from state_policy.engine.explaining import Explainer
from state_policy.engine.ports.answering import Answers
from state_policy.engine.ports.effects import Effect, Parts
from state_policy.engine.ports.moving import Mover
from state_policy.engine.ports.reading import Caller, Reader
from state_policy.engine.ruleset import RuleSet
from state_policy.rules import RulesError, Store, load, unsupported
from state_policy.rules.reading import with_kinds
from state_policy.wsgi import Filter, Mode, Options
from state_policy.wsgi.allowed import AllowedActions
from state_policy.wsgi.events import Events
from state_policy.wsgi.explain import Conflicts
from state_policy.wsgi.guard import Guard
from state_policy.wsgi.judge import Judge
from state_policy.wsgi.record import Recorder

DRIVERS = "state_policy.drivers"
EFFECTS = "state_policy.effects"

T = TypeVar("T")


class DeployError(RuntimeError):
    """The filter cannot be built.

    :ivar faults: everything that is wrong, a line each
    """

    def __init__(self, faults: Iterable[object]) -> None:
        self.faults = tuple(str(fault) for fault in faults)
        super().__init__(
            "state_policy is not usable: " + "; ".join(self.faults)
        )


class Driver(Reader, Protocol):
    """A reader with all that belongs to it."""

    @property
    def answers(self) -> Answers:
        """Return what makes answers."""

    @property
    def mover(self) -> Mover | None:
        """Return what moves servers, None where nothing can."""

    def hanging(self) -> int:
        """Return how many reads hang that nobody waits for any more."""

    def caller_with(self, credentials: Mapping[str, Any]) -> Caller:
        """Return a caller of whom only this is known: nobody sent it."""


def filter_factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> Callable[[WSGIApplication], Filter]:
    """Return what puts the filter before an application (paste).

    :param local_conf: options that override those of the configuration here
    :raises DeployError: saying everything that is wrong
    """
    settings = build_settings(local_conf)
    names = effect_names(settings)
    driver, faults = _collect(lambda: build_driver(settings))
    store, more = _collect(lambda: build_store(settings, names))
    shadow, others = _collect(lambda: build_shadow(settings, names))
    faults += more + others
    if driver is None or store is None or faults:
        raise DeployError(faults)
    parts = build_parts(settings, driver, store)
    effects = build_effects(parts, names)

    def make(app: WSGIApplication) -> Filter:
        return _filter(app, parts, effects, shadow)

    return make


def build_settings(
    overrides: Mapping[str, str], *, rules: bool = True
) -> Settings:
    """Return the settings of the process, or of files of their own.

    Nova's configuration is oslo.config's global one; it counts as soon as it
    is parsed, which the API has done before it reads a paste file.

    :param rules: whether the files with rules must be there; False: those
        that are not stand in ``lacking``
    :raises DeployError: for unknown options and unusable values
    """
    conf = cfg.CONF
    if "config_file" not in conf:
        conf = cfg.ConfigOpts()
        conf([], project="nova", prog="nova")
    our_conf.register_opts(conf)
    try:
        found = Settings.from_conf(conf, rules=rules)
        return found.with_overrides(overrides, rules=rules)
    except SettingsError as error:
        raise DeployError(error.faults) from error


def build_driver(settings: Settings) -> Driver:
    """Return the driver that the settings name.

    :raises DeployError: where it is missing, broken or there twice
    """
    found = plugins(DRIVERS, [settings.driver])
    try:
        return cast(Driver, found[settings.driver](settings=settings))
    except Exception as error:
        raise DeployError(
            [f"driver `{settings.driver}`: {_reason(error)}"]
        ) from error


def build_parts(settings: Settings, driver: Driver, store: Store) -> Parts:
    """Return what effects are made of.

    :raises DeployError: where servers are to be moved and cannot be
    """
    mover = None
    if settings.quarantine.enabled:
        try:
            mover = driver.mover
            if mover is not None:
                mover.prepare()
        except Exception as error:
            raise DeployError(
                [f"driver `{settings.driver}`: {_reason(error)}"]
            ) from error
    return Parts(
        build_reader(driver), driver.answers, mover, store.current, settings
    )


def build_reader(driver: Driver) -> Reader:
    """Return what reads facts, those of third parties' kinds included.

    :raises state_policy.rules.RulesError: where an installed kind is broken
    """
    return with_kinds(driver)


def build_allowed(
    reader: Reader,
    answers: Answers,
    rules: Callable[[], RuleSet],
    settings: Settings,
) -> AllowedActions:
    """Return what tells what can be done to a server."""
    return AllowedActions(
        reader,
        answers,
        rules,
        retry_after=settings.retry_after,
        refuse_unknown=settings.on_unknown == "refuse",
    )


def build_store(settings: Settings, names: Sequence[str]) -> Store:
    """Return the rules in force.

    Rules that ask for an effect that is not there are refused, now and
    whenever they are read anew.

    :raises state_policy.rules.RulesError: with every fault
    """
    return Store(
        settings.policy_file,
        settings.policy_dirs,
        places=settings.places,
        loader=_loader(names),
    )


def build_shadow(settings: Settings, names: Sequence[str]) -> Store | None:
    """Return the rules to try beside those in force, if any are named."""
    if settings.shadow_policy_file is None:
        return None
    return Store(settings.shadow_policy_file, loader=_loader(names))


def effect_names(settings: Settings) -> tuple[str, ...]:
    """Return the effects that these settings allow."""
    if settings.quarantine.enabled:
        return ("deny", "quarantine")
    return ("deny",)


def build_effects(
    parts: Parts, names: Sequence[str]
) -> Mapping[Verdict, Effect]:
    """Return what carries verdicts out.

    :raises DeployError: naming each that is missing, broken or there twice
    """
    found: dict[Verdict, Effect] = {}
    faults = []
    for name, plugin in plugins(EFFECTS, names).items():
        try:
            found[Verdict(name)] = plugin(parts)
        except Exception as error:  # noqa: BLE001
            faults.append(f"effect `{name}`: {_reason(error)}")
    if faults:
        raise DeployError(faults)
    return found


def plugins(namespace: str, names: Iterable[str]) -> dict[str, Any]:
    """Return what entry points of these names lead to.

    :raises DeployError: naming each that is missing, broken or there twice
    """
    broken: dict[str, BaseException] = {}

    def failed(_: Any, entry_point: Any, error: BaseException) -> None:
        broken[entry_point.name] = error

    wanted = tuple(names)
    found: stevedore.NamedExtensionManager[Any]
    found = stevedore.NamedExtensionManager(
        namespace,
        wanted,
        on_load_failure_callback=failed,
        # Counted below, with what is broken or there twice.
        on_missing_entrypoints_callback=lambda names: None,
    )
    counts = Counter(point.name for point in found.list_entry_points())
    faults = []
    for name in wanted:
        if counts[name] > 1:
            faults.append(f"{namespace}: `{name}` is installed twice")
        elif name in broken:
            faults.append(f"{namespace}: `{name}`: {_reason(broken[name])}")
        elif not counts[name]:
            faults.append(f"{namespace}: `{name}` is not installed")
    if faults:
        raise DeployError(faults)
    return {name: found[name].plugin for name in wanted}


def _loader(names: Sequence[str]) -> Callable[[Sequence[Path]], RuleSet]:
    def loader(files: Sequence[Path]) -> RuleSet:
        rules = load(files)
        faults = unsupported(rules, names)
        if faults:
            raise RulesError(faults)
        return rules.prepare()

    return loader


def _filter(
    app: WSGIApplication,
    parts: Parts,
    effects: Mapping[Verdict, Effect],
    shadow: Store | None,
) -> Filter:
    settings: Settings = parts.settings
    recorder = Recorder(settings.mode)
    judge = Judge(
        parts.reader,
        parts.rules,
        shadow.current if shadow else None,
        retry_after=settings.retry_after,
        refuse_unknown=settings.on_unknown == "refuse",
    )
    options = Options(
        Mode(settings.mode),
        settings.max_body,
        settings.disable_by_file_path,
        parts.answers.boot_actions(),
    )
    return Filter(
        app,
        parts.reader,
        parts.answers,
        judge,
        effects,
        recorder,
        options,
        Guard(settings.quarantine.projects) if parts.mover else None,
        _events(app, parts, recorder),
        _conflicts(parts, recorder),
        build_allowed(parts.reader, parts.answers, parts.rules, settings)
        if settings.explain
        else None,
    )


def _events(
    app: WSGIApplication, parts: Parts, recorder: Recorder
) -> Events | None:
    settings: Settings = parts.settings
    if parts.mover is None:
        return None
    return Events(
        app,
        parts.reader,
        parts.mover,
        recorder,
        settings.quarantine.projects,
        settings.max_body,
    )


def _conflicts(parts: Parts, recorder: Recorder) -> Conflicts | None:
    settings: Settings = parts.settings
    if not settings.explain:
        return None
    return Conflicts(
        parts.reader,
        Explainer(parts.reader, parts.rules),
        recorder,
        settings.retry_after,
    )


def _collect(make: Callable[[], T]) -> tuple[T | None, list[str]]:
    """Return what is made, or what is wrong with it."""
    try:
        return make(), []
    except (RulesError, DeployError) as error:
        return None, [str(fault) for fault in error.faults]


def _reason(error: BaseException) -> str:
    text = str(error)
    return (
        text
        if isinstance(error, ValueError)
        else (f"{type(error).__name__}: {text}")
    )
