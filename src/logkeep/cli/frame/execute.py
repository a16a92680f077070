"""What a verb gets to work with, and the order in which every verb is carried out.

settings → console → logs → the verb's function → its report on stdout → metrics → exit code. Errors pass through
untouched: `main` shows them.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from logkeep.cli.frame.logs import choose_level, set_up_logs, take_down_logs
from logkeep.cli.frame.metrics import MetricSample, MetricsFile
from logkeep.cli.frame.signals import as_error
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import Console, standard_console
from logkeep.cli.terminal.progress import choose_progress
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.load import Flags, load
from logkeep.config.option import Option
from logkeep.config.options import (
    COLOR,
    CONFIG,
    DRY_RUN,
    JSON,
    LOG_FILE,
    LOG_FORMAT,
    LOG_LEVEL,
    METRICS_FILE,
    PROGRESS,
    QUIET,
    REPO,
    SOURCE,
    VERBOSE,
    YES,
)
from logkeep.config.places import NOWHERE
from logkeep.config.settings import Settings
from logkeep.errors import ConfigError, LogkeepError, UsageError
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import ProgressSink

T = TypeVar("T")
ReportT = TypeVar("ReportT", bound=msgspec.Struct)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """The context of one verb. `run[OPTION]` is a setting, typed; everything else is handed in from outside."""

    settings: Settings
    console: Console
    world: World
    files: tuple[Path, ...] = ()
    """The configuration files that were read, strongest first."""
    named_config: Path | None = None
    """The file that --config or LOGKEEP_CONFIG named."""
    frame: tuple[int, str] = (1, "")
    """Schema version and words of the verb: what every JSON document begins with."""
    tell: Callable[[msgspec.Struct | None, LogkeepError | None, float], None] = lambda *_: None
    """Update --metrics-file now, with a report or an error and the seconds it took: for runs that go on for long."""

    def __getitem__(self, option: Option[T]) -> T:
        return self.settings[option]

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def token(self) -> TokenSource:
        return self.world.token

    @property
    def dry_run(self) -> bool:
        return self[DRY_RUN]

    @property
    def cache(self) -> Path:
        """The user's cache directory; not created."""
        return self.world.cache

    def repo(self) -> str:
        """The repository's URL. Raises UsageError when none is set."""
        url = self[REPO]
        if url is None:
            remedy = "pass -r URL, set LOGKEEP_REPO, or put repository.url in logkeep.yaml"
            raise UsageError("no repository is named", remedy=remedy)
        return url

    def confirm(self, question: str, *, typed: str = "") -> None:
        """Ask before a change; --yes and --dry-run answer. Raises Declined."""
        if not (self[YES] or self.dry_run):
            self.console.confirm(question, typed=typed)

    def progress(self) -> ProgressSink:
        return choose_progress(self[PROGRESS], self.console, self.world.monotonic, quiet=self[QUIET])

    def line(self, text: str, document: msgspec.Struct) -> None:
        """Print one line of the answer now: for runs that go on for long. With --json, the document in one line."""
        self.world.streaming = True
        self.console.answer(_document(self.frame, document, None) if self[JSON] else self.console.look.text(text))

    def closing(self, close: Callable[[], object]) -> None:
        """Call this when the run ends, whichever way it ends; last in, first out."""
        self.world.resources.callback(close)


@dataclass(frozen=True)
class CommandOutcome(Generic[ReportT]):
    """How a verb ended, for its metrics: a report or an error, never both."""

    source: str
    report: ReportT | None
    error: LogkeepError | None
    exit_code: int
    duration: timedelta
    ended: datetime


@dataclass(frozen=True)
class VerbJob(Generic[ReportT]):
    """What the frame needs to know of a verb to carry it out."""

    name: str
    function: Callable[..., ReportT]
    text: Callable[[ReportT, TerminalStyle], str]
    exit_code: Callable[[ReportT], int]
    metrics: Callable[[CommandOutcome[ReportT]], Iterable[MetricSample]] | None
    configured: bool
    schema_version: int


def carry_out(job: VerbJob[ReportT], world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
    """Run one verb and return its exit code. Raises what the verb raises."""
    run = _begin(job, world, flags)
    metrics = _metrics_file(job, run)
    if metrics:
        run = replace(run, tell=partial(_tell_now, metrics, job, run))
    started, report, error = world.monotonic(), None, None
    try:
        report = _uninterrupted(job, run, arguments)
    except LogkeepError as raised:
        error = raised
        _log_failure(run, raised)
        raise
    finally:
        # Also when the verb failed: "the last backup failed" is the most important value of all.
        code = error.exit_code if error else job.exit_code(report) if report is not None else 1
        if metrics and (report is not None or error):
            code = _tell(metrics, job, run, _outcome(run, report, error, code, started), code)
    run.console.answer(_answer(job, report, run))
    return code


def _uninterrupted(job: VerbJob[ReportT], run: Run, arguments: Mapping[str, Any]) -> ReportT:
    try:
        return job.function(run, **arguments)
    except KeyboardInterrupt as stop:
        raise as_error(stop) from None


def _begin(job: VerbJob[ReportT], world: World, flags: Flags) -> Run:
    environ = world.environ
    world.json, world.verbose = bool(flags.get("--json")), _count(flags.get("--verbose"))
    named = _named_config(flags, environ)
    places = world.places(named) if job.configured else NOWHERE
    loaded = load(flags, environ if job.configured else {}, places)
    settings = loaded.settings
    console = standard_console(environ, settings[COLOR], force_text=settings[JSON])
    world.console, world.log_file = console, settings[LOG_FILE]
    _begin_logs(settings, world)
    for warning in loaded.warnings:
        _warn(warning, settings, console)
    return Run(settings, console, world, loaded.files, named, (job.schema_version, job.name))


def _warn(text: str, settings: Settings, console: Console) -> None:
    if settings[LOG_FILE] is not None:
        _log.warning(text)
    elif not settings[QUIET]:
        console.warn(text)


def _begin_logs(settings: Settings, world: World) -> None:
    file = settings[LOG_FILE]
    level = choose_level(
        settings[LOG_LEVEL], quiet=settings[QUIET], verbose=settings[VERBOSE], to_file=file is not None
    )
    handler = set_up_logs(world.console, level=level, form=settings[LOG_FORMAT], file=file)
    world.resources.callback(take_down_logs, handler)


def _named_config(flags: Flags, environ: Mapping[str, str]) -> Path | None:
    text = flags.get("--config") or environ.get(CONFIG.variables[0])
    return CONFIG.kind.parse(str(text)) if text else None


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _metrics_file(job: VerbJob[ReportT], run: Run) -> MetricsFile | None:
    path = run[METRICS_FILE]
    if path is None or job.metrics is None or run.dry_run:
        return None
    file = MetricsFile(path)
    file.check()
    return file


def _outcome(
    run: Run, report: ReportT | None, error: LogkeepError | None, code: int, started: float
) -> CommandOutcome[ReportT]:
    took = timedelta(seconds=run.world.monotonic() - started)
    return CommandOutcome(run[SOURCE] or "", report, error, code, took, run.clock())


def _tell(file: MetricsFile, job: VerbJob[ReportT], run: Run, outcome: CommandOutcome[ReportT], code: int) -> int:
    """Update the file; work that is done is not undone by it, but 0 becomes 2, so that somebody looks."""
    assert job.metrics is not None  # noqa: S101  the file is only made for a job with metrics
    try:
        file.update(job.metrics(outcome))
    except ConfigError as problem:
        run.console.warn(str(problem))
        return code or 2
    return code


def _tell_now(
    file: MetricsFile,
    job: VerbJob[Any],
    run: Run,
    report: msgspec.Struct | None,
    error: LogkeepError | None,
    took_s: float,
) -> None:
    code = error.exit_code if error else job.exit_code(report)
    outcome = CommandOutcome(run[SOURCE] or "", report, error, code, timedelta(seconds=took_s), run.clock())
    _tell(file, job, run, outcome, code)


def _log_failure(run: Run, error: LogkeepError) -> None:
    # On stderr the error stands already, in its three lines.
    if run.world.log_file is not None:
        fields = {"error": error.slug(), "subject": error.subject, "exit_code": error.exit_code}
        _log.error(error.what, extra=fields, exc_info=run.world.verbose > 1)


def _answer(job: VerbJob[ReportT], report: ReportT, run: Run) -> str:
    if not run[JSON]:
        return job.text(report, run.console.look)
    return _document((job.schema_version, job.name), report, None if run.world.streaming else 2)


def _document(frame: tuple[int, str], content: msgspec.Struct, indent: int | None) -> str:
    version, verb = frame
    return json.dumps({"schema_version": version, "verb": verb, **msgspec.to_builtins(content)}, indent=indent)
