"""`--help` in the user's language: click's own pages, with each text looked up and wrapped by display width."""

from collections.abc import Callable, Iterable

import click

from logkeep.cli.frame.world import World
from logkeep.cli.terminal.messages import ENGLISH, Translation
from logkeep.cli.terminal.text import TerminalStyle, wrapped_by_width

_WIDEST_FLAGS = 30


class TranslatedHelp(click.HelpFormatter):
    """Writes the parts of a page that click and our commands hand to it."""

    def __init__(self, say: Translation, width: int | None = None, max_width: int | None = None) -> None:
        super().__init__(width=width, max_width=max_width)
        self._say = say

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(prog, args, self._say("Usage: ") if prefix is None else prefix)

    def write_heading(self, heading: str) -> None:
        super().write_heading(self._say(heading))

    def write_text(self, text: str) -> None:
        paragraphs = [self._say(" ".join(part.split())) for part in text.split("\n\n")]
        self.write("\n".join("\n".join(self._lines(part, self.current_indent)) + "\n" for part in paragraphs))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = _WIDEST_FLAGS, col_spacing: int = 2) -> None:
        listed = list(rows)
        column = min(max((len(flags) for flags, _ in listed), default=0), col_max) + col_spacing
        for flags, text in listed:
            first, *rest = self._lines(self._option(text), self.current_indent + column) or [""]
            self.write(" " * self.current_indent + flags)
            beside = len(flags) <= column - col_spacing
            self.write(" " * (column - len(flags)) + first.lstrip() + "\n" if beside else f"\n{first}\n")
            self.write("".join(f"{line}\n" for line in rest))

    def _option(self, text: str) -> str:
        """The text of an option; its variable and its default are in brackets after it."""
        about, between, extra = text.partition("  [")
        if not between:
            return self._say(about)
        facts = [self._fact(fact) for fact in extra.removesuffix("]").split("; ")]
        return f"{self._say(about)}  [{'; '.join(facts)}]"

    def _fact(self, fact: str) -> str:
        name, between, value = fact.partition(": ")
        return f"{self._say(name)}: {self._say(value)}" if between else self._say(fact)

    def _lines(self, text: str, indent: int) -> list[str]:
        return [" " * indent + line for line in wrapped_by_width(text, max(self.width - indent, 20))]


def context_with(words: Callable[[TerminalStyle], Translation]) -> type[click.Context]:
    """A context that writes help in the language of the terminal."""

    class TranslatedContext(click.Context):
        def make_formatter(self) -> click.HelpFormatter:
            world = self.find_object(World)
            say = ENGLISH if world is None else words(world.console.look)
            if say is ENGLISH:
                return super().make_formatter()
            return TranslatedHelp(say, self.terminal_width, self.max_content_width)

    return TranslatedContext
