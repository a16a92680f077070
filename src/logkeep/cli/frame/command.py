"""The click command that both programs build on: options become flags, and `--help` lists the exit codes."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from logkeep.cli.frame.exit_codes import EXITS
from logkeep.cli.frame.foreign_errors import known_error
from logkeep.cli.frame.world import World
from logkeep.config.load import Flags
from logkeep.config.option import Option, Spelling
from logkeep.config.option_types import Bool, FilePath, OneOf, Repeatable


class FrameCommand(click.Command):
    """A command that hands its flags, by option, and its arguments to `carry_out`."""

    def __init__(
        self, *, arguments: Sequence[click.Argument], flags: Sequence[tuple[str, click.Option]], exits: Sequence[int],
        help_text: str | None,
    ) -> None:  # fmt: skip
        self.exits, self._flags = tuple(exits), flags
        params = [*arguments, *(parameter for _, parameter in flags)]
        super().__init__(None, params=params, help=help_text, callback=self._call)

    def carry_out(self, name: str, world: World, flags: Flags, arguments: Mapping[str, Any]) -> int:
        """Run the command that the user typed as `name`; returns its exit code."""
        raise NotImplementedError

    def _call(self, **values: Any) -> int:
        context = click.get_current_context()
        world = context.find_object(World)
        assert world is not None  # noqa: S101  `Program.call` passes it to every command
        flags = {slot: values.pop(str(parameter.name)) for slot, parameter in self._flags}
        world.begun = True
        try:
            return self.carry_out(context.command_path.partition(" ")[2], world, flags, values)
        except BrokenPipeError as error:
            # click takes it for a reader of stdout that has gone, and would end the program without an error.
            raise known_error(error) or error from error

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), EXITS[code]) for code in self.exits])


def click_option(option: Option[Any], spelling: Spelling[Any], *, bools_take_values: bool = False) -> click.Option:
    """The flag of one spelling. Text stays text: `config.load` checks values from all places in the same way."""
    names = [f"-{option.short}"] * bool(option.short) + [spelling.flag, *spelling.also]
    shared: dict[str, Any] = {"help": _help_text(option, spelling), "default": None}
    if option.counted:
        return click.Option(names, count=True, **shared)
    if isinstance(spelling.kind, Bool):
        how: dict[str, Any] = {"metavar": "[=true|false]"} if bools_take_values else {"is_flag": True}
        return click.Option(names, **how, **shared)
    shared["metavar"] = spelling.kind.metavar or None
    if isinstance(spelling.kind, OneOf):
        return click.Option(names, type=click.Choice(spelling.kind.choices), **shared)
    if isinstance(spelling.kind, FilePath):
        return click.Option(names, type=click.Path(), **shared)
    return click.Option(names, multiple=isinstance(spelling.kind, Repeatable), **shared)


def _help_text(option: Option[Any], spelling: Spelling[Any]) -> str:
    default = option.default_text or (
        "" if option.default in (None, (), False, 0) else option.kind.show(option.default)
    )
    extra = [*spelling.variables[-1:], *([f"default: {default}"] if default else [])]
    return f"{option.help}  [{'; '.join(extra)}]" if extra else option.help
