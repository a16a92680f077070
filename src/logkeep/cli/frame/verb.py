"""The `@verb` decorator: declares a command of `logkeep` with its options, arguments, exit codes and report.

It makes a click command of a function that takes a `Run` and returns a report (a msgspec Struct). The docstring of
`logkeep.cli` has a worked example. A verb whose work loads heavy libraries has its `Declaration` in another module, so
that the parser, `--help` and completion do not load them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click
import msgspec

from logkeep.cli.frame.archived_name import ArchivedName
from logkeep.cli.frame.command import FrameCommand, click_option
from logkeep.cli.frame.execute import CommandOutcome, Run, VerbJob, carry_out
from logkeep.cli.frame.exit_codes import possible, when_full
from logkeep.cli.frame.metrics import MetricSample
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.next_step import NextStep
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.help_groups import by_group
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
_COMPLETED = {
    **dict.fromkeys(("backup", "backups", "before", "after", "checkpoint", "erased_from", "sql_backup"), "backups"),
    "source": "sources",
    **dict.fromkeys(("topics", "topic", "exclude"), "topics"),
}
"""Parameters that a shell completes from the repository."""


@dataclass(frozen=True)
class Declaration:
    """What the parser and `--help` need to know about a verb. Its values load nothing heavy."""

    help: str
    """The first line is also the verb's summary in the catalogue."""
    options: Sequence[Option[Any]] = ()
    arguments: Sequence[click.Argument] = ()
    exits: tuple[int, ...] = ()
    """Besides those of every verb."""
    changes: bool = False
    """Adds --dry-run and --yes."""
    measured: bool = False
    """Adds --metrics-file."""
    examples: Sequence[str] = ()

    def own(self) -> tuple[Option[Any], ...]:
        """All options but the common ones. REPO adds --retry-for."""
        return (
            *self.options,
            *((RETRY_FOR,) if REPO in self.options and RETRY_FOR not in self.options else ()),
            *((METRICS_FILE,) if self.measured else ()),
            *((DRY_RUN, YES) if self.changes else ()),
        )


def verb(
    declared: Declaration | None = None,
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
    next_step: Callable[[Run, ReportT], NextStep | None] = lambda *_: None,
) -> Callable[[Callable[..., ReportT]], "Verb"]:
    """Make a verb of `function(run, **arguments) -> report`.

    `text` renders the report for people; `exit_code` computes the exit code from it. `changes` adds --dry-run and
    --yes, `metrics` adds --metrics-file, the option REPO adds --retry-for. A verb that is not `configured` reads no
    configuration, so it works with a broken one. With `declared`, options, arguments, exits, changes, examples and the
    help text are in that value. `next_step` is shown to people after a run that ended well.
    """

    def declare(function: Callable[..., ReportT]) -> "Verb":
        found = declared or Declaration(
            function.__doc__ or "", options, arguments, exits, changes, metrics is not None, examples
        )
        if found.measured != (metrics is not None):
            raise TypeError(f"{function.__name__}: declaration and work disagree about metrics")
        failure = 30 if found.changes and 30 in found.exits else 20 if found.changes and 21 in found.exits else None
        job = VerbJob(
            name="",  # known when the verb is called
            function=function,
            text=text,
            exit_code=exit_code,
            metrics=metrics,
            configured=configured,
            schema_version=schema_version,
            next_step=next_step,
            failure=failure,
            full=when_full(found.exits),
        )
        return Verb(found, job, report)

    return declare


class VerbParser(FrameCommand):
    """A verb as the parser, `--help` and completion need it. `load` gets the verb itself when it is carried out."""

    def __init__(self, declared: Declaration, load: "Callable[[], Verb]") -> None:
        own = declared.own()
        self.examples, self._load = declared.examples, load
        self.options = (*own, *COMMON)
        flags = [(s.slot or s.flag, click_option(o, s)) for o in self.options for s in o.spellings() if s.flag]
        self._declared, self._parameters = own, dict(flags)
        for parameter in (*declared.arguments, *(flag for _, flag in flags)):
            if parameter.name in _COMPLETED:
                parameter.type = ArchivedName(_COMPLETED[parameter.name])
        exits = possible(declared.exits, changes=declared.changes)
        super().__init__(arguments=declared.arguments, flags=flags, exits=exits, help_text=declared.help)

    def carry_out(self, name: str, world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
        return self._load().carry_out(name, world, flags, arguments)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List everyday options first, then the others by group, and the common ones last."""
        groups = {**by_group(self._declared), "Common options": COMMON}
        for title, options in groups.items():
            found = [self._parameters[s.slot or s.flag] for o in options for s in o.spellings() if s.flag]
            last = [self.get_help_option(ctx)] if options is COMMON else []
            records = [record for p in [*found, *last] if p and (record := p.get_help_record(ctx))]
            with formatter.section(title):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")
        super().format_epilog(ctx, formatter)


class Verb(VerbParser):
    """A command of `logkeep`, with its work and report."""

    def __init__(self, declared: Declaration, job: VerbJob[Any], report: type[msgspec.Struct]) -> None:
        self.job, self.report = job, report
        taken = {"schema_version", "verb"} & {field.name for field in msgspec.structs.fields(report)}
        if taken:
            raise TypeError(f"{report.__name__} has fields that the frame writes itself: {sorted(taken)}")
        super().__init__(declared, lambda: self)

    def carry_out(self, name: str, world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
        return carry_out(replace(self.job, name=name), world, flags, arguments)
