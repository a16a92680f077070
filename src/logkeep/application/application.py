"""An application: its name, its partitions, its handlers, and its program."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from logkeep.application.context import UserHandler
from logkeep.errors import UsageError

SampleCommand = Callable[[int], tuple[str, str, Any]]
Invariant = Callable[[Mapping[str, Any]], object]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_MOST_PARTITIONS = 1024


class Application:
    """Handlers of commands. The key of a command chooses the partition; a partition processes one command at a time."""

    def __init__(self, name: str, *, partitions: int = 4) -> None:
        """`partitions` is fixed when the application runs for the first time. `main` refuses wrong arguments."""
        self.name, self.partitions = name, partitions
        self.handlers: dict[str, UserHandler] = {}
        self.samples: list[SampleCommand] = []
        self.invariants: list[Invariant] = []
        self.mistakes: list[UsageError] = []
        """In the user's code; its program reports them."""
        if not _NAME.fullmatch(name):
            remedy = "use 1 to 64 letters, digits, '_' or '-'"
            self.mistakes.append(UsageError(f"{name!r} is not a name", subject="the application", remedy=remedy))
        if not 1 <= partitions <= _MOST_PARTITIONS:
            remedy = f"use 1 to {_MOST_PARTITIONS}"
            self.mistakes.append(UsageError(f"it has {partitions} partitions", subject=repr(name), remedy=remedy))

    def on(self, command: str) -> Callable[[UserHandler], UserHandler]:
        """Make a function the handler of a command."""

        def register(handler: UserHandler) -> UserHandler:
            if command in self.handlers:
                remedy = "give one of them another name"
                self.mistakes.append(
                    UsageError(f"there are two handlers for {command!r}", subject=self.name, remedy=remedy)
                )
            self.handlers[command] = handler
            return handler

        return register

    def sample_command(self, command: SampleCommand) -> SampleCommand:
        """Make a function say what clients send in `logkeep app simulate`: it gets a number, and returns the name, the
        key and the value of a command."""
        self.samples.append(command)
        return command

    def invariant(self, check: Invariant) -> Invariant:
        """Make a function check the state of all partitions, once all messages of a simulation have arrived.

        It returns what is wrong as texts, or False, or raises AssertionError.
        """
        self.invariants.append(check)
        return check

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """The program: `run`, `send`, `state`. Ends the process."""
        from logkeep.application.program import execute  # noqa: PLC0415 - importing an application stays light

        sys.exit(execute(self, sys.argv[1:] if arguments is None else arguments, self.mistakes))
