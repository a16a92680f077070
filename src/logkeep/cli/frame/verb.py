"""The `@verb` decorator: declares a command of `logkeep` with its options, arguments, exit codes and report.

It makes a click command of a function that takes a `Run` and returns a report (a msgspec Struct). The docstring of
`logkeep.cli` has a worked example.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click
import msgspec

from logkeep.cli.frame.command import FrameCommand, click_option
from logkeep.cli.frame.execute import CommandOutcome, VerbJob, carry_out
from logkeep.cli.frame.exit_codes import possible
from logkeep.cli.frame.metrics import MetricSample
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.load import Flags
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
    QUIET,
    REPO,
    RETRY_FOR,
    VERBOSE,
    YES,
)

ReportT = TypeVar("ReportT", bound=msgspec.Struct)

COMMON: tuple[Option[Any], ...] = (JSON, CONFIG, QUIET, VERBOSE, LOG_LEVEL, LOG_FORMAT, LOG_FILE, COLOR)
"""Options of every verb."""


def verb(
    *,
    report: type[ReportT],
    text: Callable[[ReportT, TerminalStyle], str],
    options: Sequence[Option[Any]] = (),
    arguments: Sequence[click.Argument] = (),
    exits: tuple[int, ...] = (),
    exit_code: Callable[[ReportT], int] = lambda _report: 0,
    changes: bool = False,
    metrics: Callable[[CommandOutcome[ReportT]], Iterable[MetricSample]] | None = None,
    configured: bool = True,
    schema_version: int = 1,
    examples: Sequence[str] = (),
) -> Callable[[Callable[..., ReportT]], "Verb"]:
    """Make a verb of `function(run, **arguments) -> report`.

    `text` renders the report for people; `exit_code` computes the exit code from it. `changes` adds --dry-run and
    --yes, `metrics` adds --metrics-file, the option REPO adds --retry-for. A verb that is not `configured` reads no
    configuration, so it works with a broken one.
    """

    def declare(function: Callable[..., ReportT]) -> "Verb":
        own = (
            *options,
            *((RETRY_FOR,) if REPO in options and RETRY_FOR not in options else ()),
            *((METRICS_FILE,) if metrics else ()),
            *((DRY_RUN, YES) if changes else ()),
        )
        failure = 30 if changes and 30 in exits else 20 if changes and 21 in exits else 1
        job = VerbJob("", function, text, exit_code, metrics, configured, schema_version, failure)
        return Verb(
            job, report, own=own, arguments=arguments, exits=possible(exits, changes=changes), examples=examples
        )

    return declare


class Verb(FrameCommand):
    """A command of `logkeep`, with its report. `own` are its options besides the common ones."""

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
        self.job, self.report, self.examples = job, report, examples
        self.options = (*own, *COMMON)
        taken = {"schema_version", "verb"} & {field.name for field in msgspec.structs.fields(report)}
        if taken:
            raise TypeError(f"{report.__name__} has fields that the frame writes itself: {sorted(taken)}")
        self._own, self._common = ([flag for option in group for flag in _flags(option)] for group in (own, COMMON))
        flags = [*self._own, *self._common]
        super().__init__(arguments=arguments, flags=flags, exits=exits, help_text=job.function.__doc__)

    def carry_out(self, name: str, world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
        return carry_out(replace(self.job, name=name), world, flags, arguments)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verb's own options first and the common ones apart, so that they do not hide the few that matter."""
        own, common = ([parameter for _, parameter in group] for group in (self._own, self._common))
        for title, group in (("Options", own), ("Common options", [*common, self.get_help_option(ctx)])):
            records = [record for p in group if p and (record := p.get_help_record(ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        super().format_epilog(ctx, formatter)


def _flags(option: Option[Any]) -> list[tuple[str, click.Option]]:
    return [(s.slot or s.flag, click_option(option, s)) for s in option.spellings() if s.flag]
