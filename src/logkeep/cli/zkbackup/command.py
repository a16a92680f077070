"""The commands of zkbackup for the frame: their flags, settings and logs.

Booleans can be given as `--x`, `--x=true`, `--x=false` and `--no-x`; all become `--x=…` before the parser sees them, so
that `--verbose NAME` never takes the name for its value. stdout is the answer: with `--format=json` one document and
nothing else, wherever the log goes.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import click

from logkeep.cli.frame.command import FrameCommand, click_option
from logkeep.cli.frame.command_groups import named_object
from logkeep.cli.frame.execute import BaseRun, CommandAnswer, execute, named_config, start_logs
from logkeep.cli.frame.metrics import MetricSample
from logkeep.cli.frame.translated_help import context_with
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.cli.terminal.messages import words
from logkeep.cli.terminal.progress import choose_progress
from logkeep.cli.zkbackup.error_text import exit_code
from logkeep.cli.zkbackup.options import (
    COMMON,
    CONFIG,
    FORMAT,
    LIST_FORMAT,
    LOG_FILE,
    LOG_FORMAT,
    LOG_LEVEL,
    LOG_OUTPUT,
    METRICS_FILE,
    QUIET,
    VERBOSE,
    ZkOption,
)
from logkeep.cli.zkbackup.settings import load_settings
from logkeep.config.load import Flags
from logkeep.config.option import Option
from logkeep.config.option_types import Bool
from logkeep.config.settings import SettingPlace, Settings
from logkeep.errors import ConfigError, LogkeepError, UsageError
from logkeep.model.work import ProgressSink

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CommandRun(BaseRun):
    """What a command of zkbackup works with."""

    ascii_json: ClassVar[bool] = False
    command: str = ""

    def required(self, option: Option[T | None], flag: str) -> T:
        """A setting that has no default. Raises UsageError when it is not set."""
        value = self[option]
        if value is None:
            remedy = f"pass {flag}" + (f", or put {option.key} in zkbackup.yaml" if option.key else "")
            raise UsageError(f"{flag} is missing", remedy=remedy)
        return value

    def confirm(self, question: str) -> None:
        """Raises Declined when the user says no, or cannot be asked."""
        self.console.confirm(question, flag="--force")

    def exit_code(self, error: LogkeepError) -> int:
        return exit_code(self.command, error)

    def progress(self) -> ProgressSink:
        """No progress where stderr is read by a program: an error is one document there."""
        quiet = self[QUIET] or (self.world.json and self.console.err_look.width is None)
        return choose_progress(
            "auto", self.console, self.world.monotonic, quiet=quiet, say=words(self.console.err_look)
        )

    def warn(self, text: str) -> None:
        self.console.warn(text, words(self.console.err_look))


class ZkCommand(FrameCommand):
    """A command made of a function. Its help text is the function's docstring, where none is given.

    `own` are its options besides the common ones. `failed` makes the metrics of a run that ended with an error.
    """

    def __init__(
        self,
        function: Callable[..., CommandAnswer],
        help_text: str | None = None,
        *,
        own: Sequence[ZkOption[Any]],
        exits: Sequence[int],
        arguments: Sequence[click.Argument] = (),
        failed: Callable[[float], Iterable[MetricSample]] = lambda _took_s: (),
    ) -> None:
        self._function, self._failed = function, failed
        spellings = [(option, option.spellings()[0]) for option in (*own, *COMMON) if not option.flagless]
        flags = [(s.slot or s.flag, click_option(option, s, bools_take_values=True)) for option, s in spellings]
        self._booleans = {s.flag for _, s in spellings if isinstance(s.kind, Bool)}
        super().__init__(arguments=arguments, flags=flags, exits=exits, help_text=help_text or function.__doc__)

    context_class = context_with(words)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_boolean_values(args, self._booleans))

    def carry_out(self, name: str, world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
        run = begin(name, world, flags)

        def command() -> CommandAnswer:
            _log_start(name, run)
            started = world.monotonic()
            answer = self._function(run, **arguments)
            took_s = round(run.took_s(started), 3)
            _log.info("%s ended", name, extra={"exit_code": answer.exit_code, "took_s": took_s})
            return answer

        return execute(run, command, metrics=run[METRICS_FILE], failed=lambda _error, took_s: self._failed(took_s))


def late_command(where: str) -> Callable[..., CommandAnswer]:
    """The function `module:name`, whose module is imported when it is called."""

    def call(run: CommandRun, **arguments: object) -> CommandAnswer:
        function = cast("Callable[..., CommandAnswer]", named_object(where))
        return function(run, **arguments)

    return call


def with_boolean_values(args: Sequence[str], booleans: set[str]) -> list[str]:
    """The arguments with every boolean as `--x=true` or `--x=false`."""
    negated = {f"--no-{flag[2:]}": f"{flag}=false" for flag in booleans}
    end = args.index("--") if "--" in args else len(args)
    return [f"{a}=true" if a in booleans else negated.get(a, a) for a in args[:end]] + list(args[end:])


def begin(command: str, world: World, flags: Flags) -> CommandRun:
    """Read the settings and open the log."""
    world.json = "json" in (flags.get("--format"), flags.get("list-format"))
    places = world.places(named_config(CONFIG, flags, world.environ))
    settings, warnings = load_settings(flags, world.environ, places)
    world.json = "json" in (settings[FORMAT], settings[LIST_FORMAT])
    world.verbose = 2 if settings[VERBOSE] else 0
    world.console = standard_console(world.environ, force_text=world.json)
    for_programs = world.json or settings[LIST_FORMAT] == "simple"
    file = settings[LOG_FILE] if settings[LOG_OUTPUT] == "file" else None
    start_logs(
        world,
        level=_level(settings),
        form=settings[LOG_FORMAT],
        file=file and _with_directory(file),
        to_stdout=settings[LOG_OUTPUT] == "stdout" and not for_programs,
    )
    for warning in warnings:
        _log.warning(warning)
    if not (settings[QUIET] or world.json):
        for line in settings.assumed_times(flags):
            world.console.note(words(world.console.err_look).sentence(line))
    return CommandRun(settings, world.console, world, command)


def _level(settings: Settings) -> str:
    """--quiet and --verbose are given for this call, so they override a configured level."""
    if settings[QUIET]:
        return "error"
    if settings[VERBOSE]:
        return "debug"
    level = settings[LOG_LEVEL] or ("warn" if settings[LOG_OUTPUT] == "stderr" else "info")
    return "warning" if level == "warn" else level


def _with_directory(file: Path) -> Path:
    """Create the log file's directory where it is missing, as the default one is at first."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the log file's directory cannot be created: {error.strerror}",
            subject=str(file.parent),
            remedy="choose another logging.file",
        ) from error
    return file


def _log_start(name: str, run: CommandRun) -> None:
    _log.info("%s began", name)
    for setting in run.settings:
        if setting.origin.place is not SettingPlace.DEFAULT:
            _log.debug(
                "setting", extra={"key": setting.option.name, "value": setting.shown(), "from": str(setting.origin)}
            )
