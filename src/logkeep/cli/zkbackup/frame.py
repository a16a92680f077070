"""The order in which every command is carried out: settings, console, log, the command, its answer, metrics, exit code.

stdout is the answer: with `--format=json` one document and nothing else, whatever the log is told.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from logkeep.cli.frame.logs import set_up_logs, take_down_logs
from logkeep.cli.frame.metrics import MetricSample, MetricsFile
from logkeep.cli.frame.signals import as_error
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import Console, standard_console
from logkeep.cli.terminal.progress import choose_progress
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.zkbackup.options import (
    FORMAT,
    LIST_FORMAT,
    LOG_FILE,
    LOG_FORMAT,
    LOG_LEVEL,
    LOG_OUTPUT,
    METRICS_FILE,
    QUIET,
    VERBOSE,
)
from logkeep.cli.zkbackup.settings import load_settings, named_file
from logkeep.config.load import Flags
from logkeep.config.option import Option
from logkeep.config.settings import SettingPlace, Settings
from logkeep.errors import ConfigError, LogkeepError, UsageError
from logkeep.model.time import Clock
from logkeep.model.work import ProgressSink

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CommandAnswer:
    """What a command found or did: as a document, as text, as an exit code, as measures."""

    document: Mapping[str, Any]
    text: Callable[[TerminalStyle], str]
    exit_code: int = 0
    samples: tuple[MetricSample, ...] = ()


@dataclass(frozen=True)
class CommandRun:
    """What a command gets to work with. `run[OPTION]` is a setting, typed."""

    settings: Settings
    console: Console
    world: World
    json: bool

    def __getitem__(self, option: Option[T]) -> T:
        return self.settings[option]

    @property
    def clock(self) -> Clock:
        return self.world.clock

    def needed(self, option: Option[T | None], flag: str) -> T:
        """A setting that has no default. Raises UsageError when nobody gave it."""
        value = self[option]
        if value is None:
            told = f"pass {flag}" + (f", or put {option.key} in zkbackup.yaml" if option.key else "")
            raise UsageError(f"{flag} is missing", remedy=told)
        return value

    def confirm(self, question: str) -> None:
        """Raises Declined when the user says no, or cannot be asked."""
        self.console.confirm(question, flag="--force")

    def progress(self) -> ProgressSink:
        """None where stderr is for machines: an error is one document there."""
        quiet = self[QUIET] or (self.json and self.console.err_look.width is None)
        return choose_progress("auto", self.console, self.world.monotonic, quiet=quiet)

    def took_s(self, started: float) -> float:
        return max(self.world.monotonic() - started, 0.0)


@dataclass(frozen=True)
class CommandJob:
    """What the frame needs to know of a command. `failed` measures a run that ended with an error."""

    name: str
    function: Callable[..., CommandAnswer]
    failed: Callable[[float], Iterable[MetricSample]] = lambda _took_s: ()


def carry_out(job: CommandJob, world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
    """One command. Returns its exit code; raises what it raises."""
    run = begin(world, flags)
    metrics, started = _metrics_file(run), world.monotonic()
    _log_beginning(job, run)
    try:
        answer = _uninterrupted(job, run, arguments)
    except LogkeepError as error:
        _log_failure(run, error)
        if metrics:
            _tell(metrics, run, job.failed(run.took_s(started)))
        raise
    told = not metrics or _tell(metrics, run, answer.samples)
    _log.info("%s ended", job.name, extra={"exit_code": answer.exit_code, "took_s": round(run.took_s(started), 3)})
    document = json.dumps(answer.document, indent=2, ensure_ascii=False) if run.json else None
    run.console.answer(document if document is not None else answer.text(run.console.look))
    return answer.exit_code or (0 if told else 2)


def begin(world: World, flags: Flags) -> CommandRun:
    """Read the settings and open the log."""
    world.json = "json" in (flags.get("--format"), flags.get("list-format"))
    settings, warnings = load_settings(flags, world.environ, world.places(named_file(flags, world.environ)))
    wants_json = "json" in (settings[FORMAT], settings[LIST_FORMAT])
    world.json, world.verbose = wants_json, 2 if settings[VERBOSE] else 0
    world.console = standard_console(world.environ, force_text=wants_json)
    _begin_log(settings, world, for_machines=wants_json or settings[LIST_FORMAT] == "simple")
    for warning in warnings:
        _log.warning(warning)
    return CommandRun(settings, world.console, world, wants_json)


def _begin_log(settings: Settings, world: World, *, for_machines: bool) -> None:
    file = settings[LOG_FILE] if settings[LOG_OUTPUT] == "file" else None
    world.log_file = file
    level = _level(settings)
    to_stdout = settings[LOG_OUTPUT] == "stdout" and not for_machines
    handler = set_up_logs(
        world.console, level="warning" if level == "warn" else level, form=settings[LOG_FORMAT],
        file=_made(file), to_stdout=to_stdout,
    )  # fmt: skip
    world.resources.callback(take_down_logs, handler)


def _level(settings: Settings) -> str:
    """--quiet and --verbose are said for this call, so they go before a configured level."""
    if settings[QUIET]:
        return "error"
    if settings[VERBOSE]:
        return "debug"
    return settings[LOG_LEVEL] or ("warn" if settings[LOG_OUTPUT] == "stderr" else "info")


def _made(file: Path | None) -> Path | None:
    """The log file's directory is made where it is missing: the default one is nobody's yet."""
    if file is not None:
        try:
            file.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"the log file's directory cannot be made: {error.strerror}",
                subject=str(file.parent),
                remedy="choose another logging.file",
            ) from error
    return file


def _uninterrupted(job: CommandJob, run: CommandRun, arguments: Mapping[str, Any]) -> CommandAnswer:
    try:
        return job.function(run, **arguments)
    except KeyboardInterrupt as stop:
        raise as_error(stop) from None


def _metrics_file(run: CommandRun) -> MetricsFile | None:
    path = run[METRICS_FILE]
    if path is None:
        return None
    file = MetricsFile(path)
    file.check()
    return file


def _tell(file: MetricsFile, run: CommandRun, samples: Iterable[MetricSample]) -> bool:
    """Update the file. What is done is not undone when that fails, but somebody should look."""
    try:
        file.update(samples)
    except ConfigError as problem:
        run.console.warn(str(problem))
        return False
    return True


def _log_beginning(job: CommandJob, run: CommandRun) -> None:
    _log.info("%s began", job.name)
    for setting in run.settings:
        if setting.origin.place is not SettingPlace.DEFAULT:
            _log.debug(
                "setting", extra={"key": setting.option.name, "value": setting.shown(), "from": str(setting.origin)}
            )


def _log_failure(run: CommandRun, error: LogkeepError) -> None:
    if run.world.log_file is not None:  # on a terminal the error stands already, in its three lines
        fields = {"error": error.slug(), "subject": error.subject}
        _log.error(error.what, extra=fields)
