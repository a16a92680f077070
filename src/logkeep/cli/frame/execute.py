"""How a command of either program is carried out: settings, console, logs, the command, metrics, answer, exit code.

`execute` is the common part. `Run` is what a verb of `logkeep` works with; `zkbackup.command` has its counterpart.
Errors pass through untouched: `program` shows them.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import msgspec

from logkeep.cli.frame.foreign_errors import known_error
from logkeep.cli.frame.logs import choose_level, set_up_logs, take_down_logs
from logkeep.cli.frame.metrics import MetricSample, MetricsFile
from logkeep.cli.frame.signals import as_error
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import Console, standard_console
from logkeep.cli.terminal.escaping import shown_values
from logkeep.cli.terminal.next_step import NextStep
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
from logkeep.errors import OF_THE_VERB, ConfigError, LogkeepError, StoreFull, UsageError
from logkeep.model.findings import Finding
from logkeep.model.printable_text import safe_json
from logkeep.model.time import Clock, TokenSource
from logkeep.model.work import NoProgress, ProgressSink

T = TypeVar("T")
ReportT = TypeVar("ReportT", bound=msgspec.Struct)
_log = logging.getLogger(__name__)
_WENT_WELL = (0, 2)


@dataclass(frozen=True)
class BaseRun:
    """What a command of either program works with. `run[OPTION]` is a setting, typed."""

    ascii_json: ClassVar[bool] = True
    settings: Settings
    console: Console
    world: World

    def __getitem__(self, option: Option[T]) -> T:
        return self.settings[option]

    @property
    def clock(self) -> Clock:
        return self.world.clock

    @property
    def token(self) -> TokenSource:
        return self.world.token

    @property
    def cache(self) -> Path:
        """The user's cache directory; not created."""
        return self.world.cache

    def took_s(self, started: float) -> float:
        return max(self.world.monotonic() - started, 0.0)

    def exit_code(self, error: LogkeepError) -> int:
        """What the program ends with after this error."""
        return error.exit_code

    def closing(self, close: Callable[[], object]) -> None:
        """Call this when the run ends, however it ends; last in, first out."""
        self.world.resources.callback(close)


@dataclass(frozen=True)
class CommandAnswer:
    """What a command found or did: as a JSON document, as text, as an exit code, as metrics."""

    document: Mapping[str, Any]
    text: Callable[[TerminalStyle], str]
    exit_code: int = 0
    samples: Iterable[MetricSample] = ()


def execute(
    run: BaseRun,
    command: Callable[[], CommandAnswer],
    *,
    metrics: Path | None,
    failed: Callable[[LogkeepError, float], Iterable[MetricSample]],
) -> int:
    """Run a command, update the metrics file, print the answer, return the exit code. Raises what the command raises.

    `failed` makes the metrics of a command that ended with an error, from the error and the seconds it took.
    """
    if metrics is not None:
        MetricsFile(metrics).check()
    started = run.world.monotonic()
    try:
        answer = _without_interrupts(command)
    except LogkeepError as error:
        _log_failure(run, error)
        # "The last backup failed" is the most important value of all.
        if metrics is not None:
            _update(metrics, run, failed(error, run.took_s(started)))
        raise
    updated = metrics is None or _update(metrics, run, answer.samples)
    run.console.answer(_json(run, answer.document) if run.world.json else answer.text(run.console.look))
    return answer.exit_code or (0 if updated else 2)


def start_logs(world: World, *, level: str, form: str, file: Path | None, to_stdout: bool = False) -> None:
    """Send the logs of this run to the file, or to the console of `world`."""
    world.log_file = file
    handler = set_up_logs(world.console, level=level, form=form, file=file, to_stdout=to_stdout)
    world.resources.callback(take_down_logs, handler)


def named_config(option: Option[Path | None], flags: Flags, environ: Mapping[str, str]) -> Path | None:
    """The configuration file that the flag --config or its variable names."""
    text = flags.get("--config") or environ.get(option.variables[0])
    return option.kind.parse(str(text)) if text else None


def _without_interrupts(command: Callable[[], CommandAnswer]) -> CommandAnswer:
    try:
        return command()
    except KeyboardInterrupt as stop:
        raise as_error(stop) from None


def _log_failure(run: BaseRun, error: LogkeepError) -> None:
    if run.world.log_file is not None:  # stderr gets the error in three lines anyway
        fields = {"error": error.slug(), "subject": error.subject, "exit_code": run.exit_code(error)}
        _log.error(error.what, extra=fields, exc_info=run.world.verbose > 1)


def _update(file: Path, run: BaseRun, samples: Iterable[MetricSample]) -> bool:
    """Update the metrics file. A failure does not undo the work, but the exit code 0 becomes 2."""
    try:
        MetricsFile(file).update(samples)
    except ConfigError as problem:
        run.console.warn(str(problem))
        return False
    return True


def _json(run: BaseRun, document: Mapping[str, Any]) -> str:
    return safe_json(json.dumps(document, indent=None if run.world.streaming else 2, ensure_ascii=run.ascii_json))


@dataclass(frozen=True)
class Run(BaseRun):
    """What a verb of `logkeep` works with."""

    files: tuple[Path, ...] = ()
    """The configuration files that were read, strongest first."""
    named_config: Path | None = None
    """The file that --config or LOGKEEP_CONFIG named."""
    header: tuple[int, str] = (1, "")
    """Schema version and words of the verb: what every JSON document begins with."""
    update_metrics: Callable[[msgspec.Struct | None, LogkeepError | None, float], None] = lambda *_: None
    """Update --metrics-file now, with a report or an error and the seconds it took: for runs of many rounds."""
    settings_with: Callable[[Flags], Settings] = lambda _: Settings({})
    """The settings as they would be with these flags too."""

    @property
    def dry_run(self) -> bool:
        return self[DRY_RUN]

    def with_flags(self, added: Flags) -> "Run":
        """The same run as if the user had typed these flags too. Files may have settings for one --source only."""
        return replace(self, settings=self.settings_with(added))

    def repo(self) -> str:
        """The repository's URL. Raises UsageError when none is set."""
        url = self[REPO]
        if url is None:
            remedy = (
                "pass -r DIRECTORY or -r s3://bucket/prefix, set LOGKEEP_REPO, or write repository.url in logkeep.yaml"
            )
            raise UsageError("no repository is named", remedy=remedy)
        return url

    def confirm(self, question: str, *, typed: str = "") -> None:
        """Ask before a change, unless --yes or --dry-run is given. Raises Declined."""
        if not (self[YES] or self.dry_run):
            self.console.confirm(question, typed=typed)

    def progress(self) -> ProgressSink:
        return choose_progress(self[PROGRESS], self.console, self.world.monotonic, quiet=self[QUIET])

    def say(self, line: str) -> None:
        """Print a line about what takes some seconds, where progress would be shown."""
        if not isinstance(self.progress(), NoProgress):
            self.console.note(line)

    def line(self, text: Callable[[ReportT], str], document: ReportT) -> None:
        """Print one line of the answer now: for runs of many rounds. With --json, the document in one line."""
        self.world.streaming = True
        json_line = _json(self, self.document(document)) if self[JSON] else ""
        self.console.answer(json_line or self.console.look.text(text(shown_values(document))))

    def show(self, text: Callable[[ReportT, TerminalStyle], str], report: ReportT) -> None:
        """Print a report and an empty line to stderr: the plan before a question. `text` gets its values escaped."""
        self.console.show(f"{text(shown_values(report), self.console.err_look)}\n")

    def document(self, content: msgspec.Struct) -> dict[str, Any]:
        """The JSON document of a report."""
        version, verb = self.header
        return {"schema_version": version, "verb": verb, **msgspec.to_builtins(content)}


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
    """What the frame needs to know about a verb to carry it out."""

    name: str
    function: Callable[..., ReportT]
    text: Callable[[ReportT, TerminalStyle], str]
    exit_code: Callable[[ReportT], int]
    metrics: Callable[[CommandOutcome[ReportT]], Iterable[MetricSample]] | None
    configured: bool
    schema_version: int
    next_step: Callable[[Run, ReportT], NextStep | None] = lambda *_: None
    """What a person does after this verb, if it ended well."""
    failure: int | None = None
    """The exit code for errors of a kind in `OF_THE_VERB`: 20 of a backup, 30 of a restore; None: that of the kind."""
    full: int = 20
    """The exit code when a disk or store is full; 30 of a restore."""

    def samples(
        self, run: Run, report: ReportT | None, error: LogkeepError | None, took_s: float
    ) -> Iterable[MetricSample]:
        """The metrics of a report or an error."""
        if self.metrics is None:
            return ()
        code = error.exit_code if error else self.exit_code(report) if report is not None else 1
        took = timedelta(seconds=took_s)
        return self.metrics(CommandOutcome(run[SOURCE] or "", report, error, code, took, run.clock()))


def carry_out(job: VerbJob[ReportT], world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
    """Run one verb and return its exit code. Raises what the verb raises."""
    run = _begin(job, world, flags)
    metrics = run[METRICS_FILE] if job.metrics and not run.dry_run else None
    if metrics is not None:
        run = replace(run, update_metrics=partial(_update_now, metrics, job, run))
    started = world.monotonic()
    steps: list[NextStep] = []

    def command() -> CommandAnswer:
        report = classified(job, lambda: job.function(run, **arguments))
        if (step := job.next_step(run, report)) is not None:
            steps.append(step)
        samples = job.samples(run, report, None, run.took_s(started)) if metrics is not None else ()
        document = _with_findings(run.document(report), world.findings) if world.json else {}
        return CommandAnswer(document, partial(job.text, shown_values(report)), job.exit_code(report), samples)

    code = execute(run, command, metrics=metrics, failed=lambda error, took_s: job.samples(run, None, error, took_s))
    if code in _WENT_WELL and not (run.dry_run or run[QUIET] or run[JSON]) and run.console.is_read:
        for step in steps:
            run.console.show(step.text(run.console.err_look))
    return code


def classified(job: VerbJob[ReportT], function: Callable[[], ReportT]) -> ReportT:
    """The report of a verb. Errors get the exit code that this verb has for them."""
    try:
        return function()
    except LogkeepError as error:
        error.exit_code = _code(job, error)
        raise
    except Exception as error:
        if (found := known_error(error)) is None:
            raise
        found.exit_code = _code(job, found)
        raise found from error


def _code(job: VerbJob[ReportT], error: LogkeepError) -> int:
    if isinstance(error, StoreFull):
        return job.full
    return job.failure if job.failure is not None and type(error) in OF_THE_VERB else error.exit_code


def _with_findings(document: dict[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    """The text has them as warnings already."""
    added = msgspec.to_builtins(findings)
    return {**document, "findings": [*document.get("findings", ()), *added]} if added else document


def _update_now(
    file: Path,
    job: VerbJob[Any],
    run: Run,
    report: msgspec.Struct | None,
    error: LogkeepError | None,
    took_s: float,
) -> None:
    _update(file, run, job.samples(run, report, error, took_s))


def _begin(job: VerbJob[ReportT], world: World, flags: Flags) -> Run:
    environ = world.environ
    verbose = flags.get("--verbose")
    world.json, world.verbose = bool(flags.get("--json")), verbose if isinstance(verbose, int) else 0
    named = named_config(CONFIG, flags, environ)
    places = world.places(named) if job.configured else NOWHERE
    given = environ if job.configured else {}
    loaded = load(flags, given, places)
    settings = loaded.settings
    world.console = standard_console(environ, settings[COLOR], force_text=settings[JSON])
    file = settings[LOG_FILE]
    level = choose_level(
        settings[LOG_LEVEL], quiet=settings[QUIET], verbose=settings[VERBOSE], to_file=file is not None
    )
    start_logs(world, level=level, form=settings[LOG_FORMAT], file=file)
    for warning in loaded.warnings:
        if file is not None:
            _log.warning(warning)
        elif not settings[QUIET]:
            world.console.warn(warning)
    if not (settings[QUIET] or settings[JSON]):
        for line in settings.assumed_times(flags):
            world.console.note(line)

    return Run(
        settings,
        world.console,
        world,
        loaded.files,
        named,
        (job.schema_version, job.name),
        settings_with=lambda added: load({**flags, **added}, given, places).settings,
    )
