"""The entry point of `logkeep`."""

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from logkeep.cli.frame.catalogue import GROUPS, SECTIONS, VERBS, VerbEntry
from logkeep.cli.frame.program import Program
from logkeep.cli.frame.world import World
from logkeep.config.places import standard_places

_HELP = """Backup and restore for everything that is a log.

Settings come from flags, then LOGKEEP_... variables, ./logkeep.yaml (or --config FILE), the user's
~/.config/logkeep/config.yaml and ~/.logkeep.yaml, /etc/logkeep/config.yaml, and defaults, in this order.
`logkeep config show` prints each with its origin.
"""


def logkeep(verbs: Sequence[VerbEntry] = VERBS) -> Program:
    """The program; tests add verbs of their own."""
    return Program(
        name="logkeep",
        help=_HELP,
        commands=verbs,
        groups=GROUPS,
        sections=SECTIONS,
        places=lambda environ, named: standard_places(environ, directory=Path(), named=named),
        asks_for_json=lambda words: "--json" in words,
    )


def main(verbs: Sequence[VerbEntry] = VERBS) -> NoReturn:
    """The installed `logkeep` command."""
    logkeep(verbs).main()


def call(argv: list[str], world: World) -> int:
    """One call of `logkeep` in a given world; returns the exit code and never raises."""
    return logkeep().call(argv, world)
