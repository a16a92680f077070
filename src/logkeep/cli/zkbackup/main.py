"""The entry point of `zkbackup`, with its seven commands.

With `--format=json` an error is one JSON document on stderr.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from logkeep.cli.frame.command_groups import CommandEntry
from logkeep.cli.frame.program import Program
from logkeep.cli.terminal.messages import words
from logkeep.cli.zkbackup.error_text import as_json, exit_code, remedy
from logkeep.cli.zkbackup.settings import places

_HELP = """Back up, verify and restore one ZooKeeper server, any version from 3.4 to 3.9.

Settings come from flags, then ZKBACKUP_SECTION_KEY variables, ./zkbackup.yaml (or --config FILE), ~/.zkbackup.yaml and
/etc/zkbackup/config.yaml, in this order. For ensembles, incremental backups and object stores use `logkeep zookeeper`.
"""
COMMANDS: Final = tuple(
    CommandEntry(name, f"logkeep.cli.zkbackup.{where}", summary)
    for name, where, summary in (
        ("backup", "declarations:BACKUP_COMMAND", "Back up one server while it runs."),
        ("restore", "declarations:RESTORE_COMMAND", "Put a backup in place of a stopped server's data."),
        (
            "verify",
            "declarations:VERIFY_COMMAND",
            "Check that a backup can be restored, and repair what can be repaired.",
        ),
        ("list", "list:COMMAND", "List the backups of a directory."),
        ("info", "info:COMMAND", "Show all about one backup."),
        ("prune", "prune:COMMAND", "Delete backups that are no longer needed."),
        ("completion", "completion:COMMAND", "Print the completion script for a shell."),
    )
)
"""The summary is the first line of the command's help text, repeated here so that `zkbackup --help` loads nothing."""


def asks_for_json(words: Sequence[str]) -> bool:
    flags = ("--format", "--output-format")
    return any(f"{flag}=json" in words or (flag, "json") in pairwise(words) for flag in flags)


PROGRAM: Final = Program(
    name="zkbackup",
    help=_HELP,
    commands=COMMANDS,
    places=lambda environ, named: places(environ, Path(), named),
    asks_for_json=asks_for_json,
    error_json=as_json,
    exit_code=exit_code,
    remedy=remedy,
    words=words,
)
main = PROGRAM.main
"""The installed `zkbackup` command."""
