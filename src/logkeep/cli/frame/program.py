"""One call of a program: parse, carry out one command, turn whatever went wrong into three lines and an exit code.

Promises: an exit code of `exit_codes.EXITS`, always; no traceback on a terminal unless -vv asks for it; SIGINT ends
with 130 and SIGTERM with 143, after everything that was opened is closed.
"""

import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import click

from logkeep.cli.frame.command_groups import CommandEntry, LazyGroup
from logkeep.cli.frame.error_text import as_json, as_text, from_click, keep_traceback, unexpected
from logkeep.cli.frame.foreign_errors import known_error
from logkeep.cli.frame.logs import safe_traceback
from logkeep.cli.frame.signals import as_error, listen
from logkeep.cli.frame.translated_help import context_with
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import silence, standard_console, unwritten
from logkeep.cli.terminal.messages import ENGLISH, Translation
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.config.places import Places
from logkeep.errors import LogkeepError
from logkeep.model.process_memory import forbid_core_dumps
from logkeep.model.version import __version__


@dataclass(frozen=True, kw_only=True)
class Program:
    """What one program has of its own. How its errors are shown may depend on the command that failed."""

    name: str
    help: str
    commands: Sequence[CommandEntry]
    groups: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Headings of the help, with the commands below each."""
    places: Callable[[Mapping[str, str], Path | None], Places]
    """The configuration files, from the environment and the file that --config named."""
    asks_for_json: Callable[[Sequence[str]], bool]
    """For errors that come before the settings are known."""
    error_json: Callable[[str, LogkeepError], str] = lambda _command, error: as_json(error)
    exit_code: Callable[[str, LogkeepError], int] = lambda _command, error: error.exit_code
    remedy: Callable[[LogkeepError], str] = lambda error: error.remedy
    words: Callable[[TerminalStyle], Translation] = lambda _style: ENGLISH
    """The language of errors and help on a stream of this style."""

    def main(self) -> NoReturn:
        """Run in this process, with its arguments, environment and streams."""
        # Files that are created without a mode are for this user alone; files for others get their mode explicitly.
        os.umask(0o077)
        _open_standard_streams()
        forbid_core_dumps()
        listen()
        argv = sys.argv[1:]
        sys.exit(self.call(argv, self.real_world(argv)))

    def real_world(self, argv: list[str]) -> World:
        environ = dict(os.environ)
        words = argv[: argv.index("--")] if "--" in argv else argv
        return World(
            environ=environ,
            console=standard_console(environ),
            places=lambda named: self.places(environ, named),
            json=self.asks_for_json(words),
            verbose=sum(word == "-vv" for word in words) * 2,
        )

    def call(self, argv: list[str], world: World) -> int:
        """One call in a given world; returns the exit code and never raises."""
        with contextlib.ExitStack() as last:
            last.callback(_close, world)
            try:
                return self._parse_and_run(argv, world)
            except LogkeepError as error:
                return self._fail(error, argv, world)
            except click.exceptions.NoArgsIsHelpError as error:
                world.console.show(error.format_message())
                return 40
            except click.ClickException as error:
                return self._fail(from_click(error, self.name), argv, world)
            except (KeyboardInterrupt, click.Abort) as stop:  # before or after the command itself
                return self._fail(as_error(stop.__cause__ or stop), argv, world)
            except Exception as error:  # noqa: BLE001  the last line of defence: users never see a traceback
                return self._fail(_explained(error, world) or _crashed(error, argv, world), argv, world)

    def _parse_and_run(self, argv: list[str], world: World) -> int:
        settings = {"help_option_names": ["-h", "--help"]}
        group = LazyGroup(self.commands, self.groups, sections=self.sections, help=self.help, context_settings=settings)
        group.context_class = context_with(self.words)
        root = click.version_option(__version__, message=f"{self.name} %(version)s")(group)
        try:
            code = root.main(args=argv, prog_name=self.name, standalone_mode=False, obj=world)
        except SystemExit:  # click, when the reader of --help or --version has closed the pipe: that is no error
            return 0
        return code if isinstance(code, int) else 0

    def _fail(self, error: LogkeepError, argv: Sequence[str], world: World) -> int:
        names = {entry.words for entry in self.commands}
        command = next((word for word in argv if word in names), "")
        world.console.live("")
        if world.json:
            world.console.show(self.error_json(command, error), redacted=True)
        else:
            error.remedy = self.remedy(error)
            look = world.console.err_look
            world.console.show(as_text(error, look, self.words(look)))
        return self.exit_code(command, error)


def _open_standard_streams() -> None:
    """Open closed standard streams as /dev/null: the next file would get their number, and be written to as stdout."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115


def _explained(error: Exception, world: World) -> LogkeepError | None:
    """An error of the operating system or of a library that is no fault of this program."""
    if isinstance(error, OSError) and not world.begun:
        silence(sys.stdout)
        return unwritten(error)
    return known_error(error)


def _crashed(error: Exception, argv: list[str], world: World) -> LogkeepError:
    """An unexpected exception as an error that says where its traceback is stored."""
    if world.verbose > 1:
        world.console.show(safe_traceback(error))
    if world.log_file is not None:
        logging.getLogger(__name__).error("unexpected error", exc_info=error)
        return unexpected(error, str(world.log_file))
    kept = keep_traceback(error, argv, world.cache, world.clock())
    return unexpected(error, str(kept) if kept else "a run with -vv")


def _close(world: World) -> None:
    """Close what the run had open. A problem there is a warning and hides nothing."""
    try:
        world.resources.close()
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001  the command's own result must not be lost
        world.console.warn(f"clean-up was not complete: {type(error).__name__}: {error}")
