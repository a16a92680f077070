"""Groups of commands. The module of a command is loaded only when it is called.

`kafka restore` and `kafka restore abort` may both be commands: the longest that the typed words match is called.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Final

import click

from logkeep.cli.frame.command import FrameCommand

_HELP: Final = "help"


def named_object(where: str) -> object:
    """The object of `module:name`; its module is imported now."""
    module, _, name = where.partition(":")
    found: object = getattr(import_module(module), name)
    return found


@dataclass(frozen=True)
class CommandEntry:
    """One command. `words` is what a user types after the program's name: one, two or three words."""

    words: str
    where: str
    """`module:name`"""
    summary: str

    def load(self) -> FrameCommand:
        found = named_object(self.where)
        if not isinstance(found, FrameCommand):
            raise TypeError(f"{self.where} is not a command")
        return found

    def parser(self) -> FrameCommand:
        """The command for the parser and `--help`; what it works with may be loaded later."""
        return self.load()


class LazyGroup(click.Group):
    """The commands whose words begin with `prefix`."""

    def __init__(
        self,
        entries: Sequence[CommandEntry],
        groups: Mapping[str, str],
        prefix: str = "",
        *,
        sections: Mapping[str, Sequence[str]] | None = None,
        **extra: object,
    ) -> None:
        """`sections` are headings of the help, with the commands below each; the others follow below a last one."""
        super().__init__(prefix.rpartition(" ")[2] or None, no_args_is_help=True, **extra)  # type: ignore[arg-type]  # click's own keywords
        self._groups = groups
        self._sections = sections or {}
        self._prefix = f"{prefix} " if prefix else ""
        self._entries = [e for e in entries if e.words.startswith(self._prefix)]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Also `help` at the top, which is no verb: it prints the help of the words after it."""
        return [*self._names(), *([_HELP] if ctx.parent is None else [])]

    def _names(self) -> list[str]:
        return list(dict.fromkeys(e.words.removeprefix(self._prefix).split()[0] for e in self._entries))

    def longer_words(self, name: str) -> list[str]:
        """The commands that end with this word: `kafka backup` and others for `backup`."""
        return [e.words.removeprefix(self._prefix) for e in self._entries if e.words.endswith(f" {name}")]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        words = self._prefix + name
        if ctx.parent is None and name == _HELP:
            return HelpCommand(self)
        for entry in self._entries:
            if entry.words == words:
                return entry.parser()
        if any(e.words.startswith(f"{words} ") for e in self._entries):
            return LazyGroup(self._entries, self._groups, words, help=self._groups.get(words))
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        for length in (3, 2):
            words = " ".join(args[:length])
            for entry in self._entries:
                if len(args) >= length and entry.words == self._prefix + words:
                    return words, entry.parser(), args[length:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        names = self.list_commands(ctx)
        headed = {name for section in self._sections.values() for name in section}
        others = "Other commands" if headed else "Commands"
        longest = max(map(len, names))
        for heading, below in {**self._sections, others: [name for name in names if name not in headed]}.items():
            with formatter.section(heading):
                # One column for all sections.
                rows = [(name.ljust(longest), self._summary(name)) for name in below if name in names]
                formatter.write_dl(rows)

    def _summary(self, name: str) -> str:
        words = self._prefix + name
        if words == _HELP:
            return HelpCommand.SUMMARY
        return next((e.summary for e in self._entries if e.words == words), self._groups.get(words, ""))


class HelpCommand(click.Command):
    """`help VERB`: the same as `VERB --help`."""

    SUMMARY: ClassVar = "Show the help of a command."

    def __init__(self, root: click.Group) -> None:
        words = click.Argument(["words"], metavar="[COMMAND]...", nargs=-1, shell_complete=self._complete)
        super().__init__(_HELP, params=[words], help=self.SUMMARY, callback=self._show)
        self._root = root

    def _show(self, words: tuple[str, ...]) -> None:
        top = click.get_current_context().find_root()
        settings: dict[str, Any] = {"help_option_names": top.help_option_names}
        self._root.main([*words, "--help"], prog_name=top.info_name, standalone_mode=False, obj=top.obj, **settings)

    def _complete(self, ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
        group: click.Command | None = self._root
        for word in ctx.params.get("words") or ():
            group = group.get_command(ctx, word) if isinstance(group, click.Group) else None
        names = group.list_commands(ctx) if isinstance(group, click.Group) else []
        return [name for name in names if name.startswith(incomplete)]
