"""Declaring a verb: its options, arguments, exit codes, report and how the report looks.

The decorator makes a click command out of a function from `Run` to a report (a msgspec Struct). See the package's
docstring for a worked example.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click
import msgspec

from logkeep.cli.frame.execute import CommandOutcome, VerbJob, carry_out
from logkeep.cli.frame.exit_codes import EXITS, possible
from logkeep.cli.frame.metrics import MetricSample
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.option import Option, Spelling
from logkeep.config.option_types import Bool, FilePath, OneOf, Repeatable
from logkeep.config.options import (
    COLOR,
    CONFIG,
    DRY_RUN,
    JSON,
    LOG_FILE,
    LOG_FORMAT,
    LOG_LEVEL,
    METRICS_FILE,
    QUIET,
    REPO,
    RETRY_FOR,
    VERBOSE,
    YES,
)

ReportT = TypeVar("ReportT", bound=msgspec.Struct)

COMMON: tuple[Option[Any], ...] = (JSON, CONFIG, QUIET, VERBOSE, LOG_LEVEL, LOG_FORMAT, LOG_FILE, COLOR)
"""What every verb takes."""


def _zero(_report: object) -> int:
    return 0


def verb(
    *,
    report: type[ReportT],
    text: Callable[[ReportT, TerminalStyle], str],
    options: Sequence[Option[Any]] = (),
    arguments: Sequence[click.Argument] = (),
    exits: tuple[int, ...] = (),
    exit_code: Callable[[ReportT], int] = _zero,
    changes: bool = False,
    metrics: Callable[[CommandOutcome[ReportT]], Iterable[MetricSample]] | None = None,
    configured: bool = True,
    schema_version: int = 1,
    examples: Sequence[str] = (),
) -> Callable[[Callable[..., ReportT]], "Verb"]:
    """Make a verb of `function(run, **arguments) -> report`.

    `text` renders the report for people; `exit_code` reads it off the report. `changes` adds --dry-run and --yes,
    `metrics` adds --metrics-file, the option REPO adds --retry-for. A verb that is not `configured` works with a
    broken configuration too.
    """

    def declare(function: Callable[..., ReportT]) -> "Verb":
        own = (
            *options,
            *((RETRY_FOR,) if REPO in options and RETRY_FOR not in options else ()),
            *((METRICS_FILE,) if metrics else ()),
            *((DRY_RUN, YES) if changes else ()),
        )
        job = VerbJob("", function, text, exit_code, metrics, configured, schema_version)
        return Verb(
            job, report, own=own, arguments=arguments, exits=possible(exits, changes=changes), examples=examples
        )

    return declare


class Verb(click.Command):
    """A click command that knows its report and its exit codes."""

    def __init__(
        self,
        job: VerbJob[Any],
        report: type[msgspec.Struct],
        *,
        own: Sequence[Option[Any]],
        arguments: Sequence[click.Argument],
        exits: tuple[int, ...],
        examples: Sequence[str],
    ) -> None:
        self.job, self.report, self.exits, self.examples = job, report, exits, examples
        self.options = (*own, *COMMON)
        taken = {"schema_version", "verb"} & {field.name for field in msgspec.structs.fields(report)}
        if taken:
            raise TypeError(f"{report.__name__} has fields that the frame writes itself: {sorted(taken)}")
        self._own = [parameter for option in own for parameter in parameters(option)]
        self._common = [parameter for option in COMMON for parameter in parameters(option)]
        super().__init__(
            None, params=[*arguments, *self._own, *self._common], help=job.function.__doc__, callback=self._called
        )

    def _called(self, **values: Any) -> int:
        context = click.get_current_context()
        world = context.find_object(World)
        assert world is not None  # noqa: S101  `main` hands it to every call
        flags = {flag: values.pop(name) for flag, name in self._flag_names()}
        name = context.command_path.partition(" ")[2]
        return carry_out(replace(self.job, name=name), world, flags, values)

    def _flag_names(self) -> list[tuple[str, str]]:
        slots = {s.flag: s.slot for option in self.options for s in option.spellings() if s.slot}
        return [(slots.get(p.opts[-1], p.opts[-1]), str(p.name)) for p in (*self._own, *self._common)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Own options first; those of every verb apart, so that they do not hide the few that matter."""
        for title, group in (("Options", self._own), ("Common options", [*self._common, self.get_help_option(ctx)])):
            records = [record for p in group if p and (record := p.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), EXITS[code]) for code in self.exits])


def parameters(option: Option[Any]) -> list[click.Option]:
    """The flags of one option: text is kept as text, because `config.load` checks values from all places alike."""
    return [_parameter(option, spelling) for spelling in option.spellings() if spelling.flag]


def _parameter(option: Option[Any], spelling: Spelling[Any]) -> click.Option:
    names = [f"-{option.short}"] * bool(option.short) + [spelling.flag]
    shared: dict[str, Any] = {
        "help": _help(option, spelling),
        "default": None,
        "metavar": spelling.kind.metavar or None,
    }
    if option.counted:
        return click.Option(names, count=True, help=shared["help"], default=None)
    if isinstance(spelling.kind, Bool):
        return click.Option(names, is_flag=True, help=shared["help"], default=None)
    if isinstance(spelling.kind, OneOf):
        return click.Option(names, type=click.Choice(spelling.kind.choices), **shared)
    if isinstance(spelling.kind, FilePath):
        return click.Option(names, type=click.Path(), **shared)
    return click.Option(names, multiple=isinstance(spelling.kind, Repeatable), **shared)


def _help(option: Option[Any], spelling: Spelling[Any]) -> str:
    extra = [spelling.variables[-1]] if spelling.variables else []
    default = option.default_text or (
        "" if option.default in (None, (), False, 0) else option.kind.show(option.default)
    )
    if default:
        extra.append(f"default: {default}")
    return f"{option.help}  [{'; '.join(extra)}]" if extra else option.help
