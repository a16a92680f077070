"""The entry point of `zkbackup`: parse, carry out one command, turn whatever went wrong into three lines and a code.

Never a traceback for a user; SIGINT ends with 130 and SIGTERM with 143. With `--format=json` an error is one JSON
document on stderr.
"""

import contextlib
import os
import sys
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import click

from logkeep import __version__
from logkeep.cli.frame.error_text import as_text, from_click
from logkeep.cli.frame.main import close_quietly, crashed
from logkeep.cli.frame.signals import as_error, listen
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import standard_console
from logkeep.cli.zkbackup.error_text import as_json, exit_code, remedy
from logkeep.cli.zkbackup.parser import NAMES, load
from logkeep.cli.zkbackup.settings import places
from logkeep.errors import LogkeepError

_HELP = """Back up, verify and restore one ZooKeeper server, any version from 3.4 to 3.9.

Settings come from flags, then ZKBACKUP_SECTION_KEY variables, ./zkbackup.yaml (or --config FILE), ~/.zkbackup.yaml and
/etc/zkbackup/config.yaml, in this order. For ensembles, incremental backups and object stores use `logkeep zookeeper`.
"""


class _Root(click.Group):
    """Loads a command when it is called."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(NAMES)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return load(name, ctx.find_object(World)) if name in NAMES else None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(NAMES.items()))


def main() -> NoReturn:
    """The installed `zkbackup` command."""
    listen()
    argv = sys.argv[1:]
    sys.exit(call(argv, real_world(argv)))


def real_world(argv: list[str]) -> World:
    environ = dict(os.environ)
    return World(
        environ=environ,
        console=standard_console(environ),
        places=lambda named: places(environ, Path(), named),
        json=asks_for_json(argv),
    )


def asks_for_json(argv: list[str]) -> bool:
    """For errors that come before the settings are known."""
    flags = ("--format", "--output-format")
    return any(f"{flag}=json" in argv or (flag, "json") in pairwise(argv) for flag in flags)


def call(argv: list[str], world: World) -> int:
    """One call of the program; returns the exit code and never raises."""
    command = next((word for word in argv if word in NAMES), "")
    with contextlib.ExitStack() as last:
        last.callback(close_quietly, world)
        try:
            return _parsed(argv, world)
        except LogkeepError as error:
            return _fail(command, error, world)
        except click.exceptions.NoArgsIsHelpError as error:
            world.console.note(error.format_message())
            return 40
        except click.ClickException as error:
            return _fail(command, from_click(error, "zkbackup"), world)
        except (KeyboardInterrupt, click.Abort) as stop:  # before or after the command itself
            return _fail(command, as_error(stop.__cause__ or stop), world)
        except Exception as error:  # noqa: BLE001  the last line of defence: users never see a traceback
            return _fail(command, crashed(error, argv, world), world)


def _parsed(argv: list[str], world: World) -> int:
    settings = {"help_option_names": ["-h", "--help"]}
    root = _Root("zkbackup", help=_HELP, no_args_is_help=True, context_settings=settings)
    whole = click.version_option(__version__, message="zkbackup %(version)s")(root)
    code = whole.main(args=argv, prog_name="zkbackup", standalone_mode=False, obj=world)
    return code if isinstance(code, int) else 0


def _fail(command: str, error: LogkeepError, world: World) -> int:
    world.console.live("")
    if world.json:
        world.console.note(as_json(command, error), redacted=True)
    else:
        error.remedy = remedy(error)
        world.console.note(as_text(error, world.console.err_look))
    return exit_code(command, error)
