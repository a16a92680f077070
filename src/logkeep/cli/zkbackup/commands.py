"""The six commands by name, each loaded when it is called: `zkbackup list` should not wait for what `restore` needs."""

from importlib import import_module
from typing import Any, Final

import click

from logkeep.cli.frame.world import World
from logkeep.cli.zkbackup.command import ZkCommand
from logkeep.cli.zkbackup.frame import CommandJob, carry_out

NAMES: Final = {
    "backup": "Back up one server while it runs.",
    "restore": "Put a backup in place of a stopped server's data.",
    "verify": "Check that a backup can be restored, and repair what can be repaired.",
    "list": "List the backups of a directory.",
    "info": "Show all about one backup.",
    "prune": "Delete backups that are no longer needed.",
}
_MODULES: Final = {name: f"logkeep.cli.zkbackup.{name}_command" for name in NAMES}


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
