"""The entry point: parse, carry out one verb, turn whatever went wrong into three lines and an exit code.

Promises: an exit code of `exits.EXITS`, always; no traceback on a terminal, ever, unless -vv asks for it; SIGINT ends
with 130 and SIGTERM with 143 after everything that was opened is closed.
"""

import contextlib
import logging
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from logkeep import __version__
from logkeep.cli.frame.catalogue import GROUPS, VERBS, VerbEntry
from logkeep.cli.frame.command_groups import LazyGroup
from logkeep.cli.frame.crash_log import keep_traceback, redacted_traceback
from logkeep.cli.frame.error_text import as_json, as_text, from_click, unexpected
from logkeep.cli.frame.signals import as_error, listen
from logkeep.cli.frame.world import World, real_world
from logkeep.errors import LogkeepError

_HELP = """Backup and restore for everything that is a log.

Settings come from flags, then LOGKEEP_... variables, ./logkeep.yaml (or --config FILE), the user's
~/.config/logkeep/config.yaml and ~/.logkeep.yaml, /etc/logkeep/config.yaml, and defaults, in this order.
`logkeep config show` prints each with its origin.
"""


def root_command(verbs: Sequence[VerbEntry] = VERBS) -> LazyGroup:
    root = LazyGroup(verbs, GROUPS, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
    return click.version_option(__version__, message="logkeep %(version)s")(root)


def main(verbs: Sequence[VerbEntry] = VERBS) -> NoReturn:
    """The installed `logkeep` command; tests add verbs of their own."""
    listen()
    argv = sys.argv[1:]
    sys.exit(call(argv, real_world(argv), verbs))


def call(argv: list[str], world: World, verbs: Sequence[VerbEntry] = VERBS) -> int:
    """One call of the program in a given world; returns the exit code and never raises."""
    with contextlib.ExitStack() as last:
        last.callback(close_quietly, world)
        try:
            return _parsed(argv, world, verbs)
        except LogkeepError as error:
            return _fail(error, world)
        except click.exceptions.NoArgsIsHelpError as error:
            world.console.note(error.format_message())
            return 40
        except click.ClickException as error:
            return _fail(from_click(error), world)
        except (KeyboardInterrupt, click.Abort) as stop:  # before or after the verb itself
            return _fail(as_error(stop.__cause__ or stop), world)
        except Exception as error:  # noqa: BLE001  the last line of defence: users never see a traceback
            return _fail(crashed(error, argv, world), world)


def _parsed(argv: list[str], world: World, verbs: Sequence[VerbEntry]) -> int:
    code = root_command(verbs).main(args=argv, prog_name="logkeep", standalone_mode=False, obj=world)
    return code if isinstance(code, int) else 0


def _fail(error: LogkeepError, world: World) -> int:
    world.console.live("")
    if world.json:
        world.console.note(as_json(error), redacted=True)
    else:
        world.console.note(as_text(error, world.console.err_look))
    return error.exit_code


def crashed(error: Exception, argv: list[str], world: World) -> LogkeepError:
    """A bug of ours as an error, its traceback kept where a developer finds it."""
    if world.verbose > 1:
        world.console.note(redacted_traceback(error))
    if world.log_file is not None:
        logging.getLogger(__name__).error("unexpected error", exc_info=error)
        return unexpected(error, str(world.log_file))
    kept = keep_traceback(error, argv, world.cache, world.clock())
    return unexpected(error, str(kept) if kept else "a run with -vv")


def close_quietly(world: World) -> None:
    """End what the run had open; a problem there is told and hides nothing."""
    try:
        world.resources.close()
    except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001  the verb's own result must not be lost
        world.console.warn(f"clean-up was not complete: {type(error).__name__}: {error}")
