"""One command of zkbackup for the parser: its flags, its help, its exit codes.

Booleans can be said as `--x`, `--x=true`, `--x=false` and `--no-x`; all become `--x=…` before the parser sees them, so
that `--verbose NAME` never takes the name for its value.

The six commands by name, each loaded when it is called: `zkbackup list` should not wait for what `restore` needs.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from logkeep.cli.frame.exit_codes import EXITS
from logkeep.cli.frame.world import World
from logkeep.cli.zkbackup.frame import CommandJob, carry_out
from logkeep.cli.zkbackup.options import COMMON, ZkOption
from logkeep.config.option_types import Bool, FilePath, OneOf

Called = Callable[[Mapping[str, object], Mapping[str, Any]], int]
"""Flags and arguments in, exit code out."""


class ZkCommand(click.Command):
    """`own` are the options that this command has before those that all have."""

    def __init__(
        self,
        name: str,
        called: Called,
        *,
        help_text: str,
        own: Sequence[ZkOption[Any]],
        exits: Sequence[int],
        arguments: Sequence[click.Argument] = (),
    ) -> None:
        self._flagged = [option for option in (*own, *COMMON) if not option.flagless]
        self._carry_out, self._exits = called, exits
        super().__init__(
            name, params=[*arguments, *map(parameter, self._flagged)], help=help_text, callback=self._called
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        booleans = {f"--{o.typed or o.name}" for o in self._flagged if isinstance(o.kind, Bool)}
        return super().parse_args(ctx, spelled_out(args, booleans))

    def _called(self, **values: Any) -> int:
        flags = {_slot(option): values.pop(_variable(option)) for option in self._flagged}
        return self._carry_out(flags, values)

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), EXITS[code]) for code in self._exits])


def spelled_out(args: Sequence[str], booleans: set[str]) -> list[str]:
    """The arguments with every boolean as `--x=true` or `--x=false`."""
    negated = {f"--no-{flag[2:]}": f"{flag}=false" for flag in booleans}
    end = args.index("--") if "--" in args else len(args)
    return [f"{a}=true" if a in booleans else negated.get(a, a) for a in args[:end]] + list(args[end:])


def parameter(option: ZkOption[Any]) -> click.Option:
    """Text stays text: values from all places are checked alike, later."""
    (spelling,) = option.spellings()
    shared: dict[str, Any] = {"help": _help(option), "default": None, "metavar": option.kind.metavar or None}
    if isinstance(option.kind, Bool):
        shared["metavar"] = "[=true|false]"
    if isinstance(option.kind, OneOf):
        shared["type"] = click.Choice(option.kind.choices)
    elif isinstance(option.kind, FilePath):
        shared["type"] = click.Path()
    return click.Option([_variable(option), spelling.flag, *option.also], **shared)


def _variable(option: ZkOption[Any]) -> str:
    return option.name.replace("-", "_")


def _slot(option: ZkOption[Any]) -> str:
    (spelling,) = option.spellings()
    return spelling.slot or spelling.flag


def _help(option: ZkOption[Any]) -> str:
    (spelling,) = option.spellings()
    default = option.default_text or ("" if option.default in (None, False) else option.kind.show(option.default))
    extra = [*spelling.variables[:1], *([f"default: {default}"] if default else [])]
    return f"{option.help}  [{'; '.join(extra)}]" if extra else option.help


NAMES: Final = {
    "backup": "Back up one server while it runs.",
    "restore": "Put a backup in place of a stopped server's data.",
    "verify": "Check that a backup can be restored, and repair what can be repaired.",
    "list": "List the backups of a directory.",
    "info": "Show all about one backup.",
    "prune": "Delete backups that are no longer needed.",
}
_MODULES: Final = {name: f"logkeep.cli.zkbackup.{name}" for name in NAMES}


def load(name: str, world: World | None) -> click.Command:
    """The command for the parser. Its module offers `JOB`, `OPTIONS`, `EXITS` and `HELP`, and may offer `ARGUMENTS`."""
    module = import_module(_MODULES[name])
    job: CommandJob = module.JOB

    def called(flags: Any, arguments: Any) -> int:
        assert world is not None  # noqa: S101  `main` hands it to every call
        return carry_out(job, world, flags, arguments)

    return ZkCommand(
        name, called, help_text=f"{NAMES[name]}\n\n{module.HELP}", own=module.OPTIONS, exits=module.EXITS,
        arguments=getattr(module, "ARGUMENTS", ()),
    )  # fmt: skip
