"""The script that makes a shell complete the commands and flags of a program."""

import click
from click.shell_completion import get_completion_class

from logkeep.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


def shell_argument() -> click.Argument:
    return click.Argument(["shell"], type=click.Choice(SHELLS), metavar="SHELL")


def completion_script(program: str, shell: str) -> str:
    """Raises UsageError for another shell."""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"there is no completion for {shell}", remedy=f"choose one of {', '.join(SHELLS)}")
    maker = kind(click.Command(program), {}, program, f"_{program.upper()}_COMPLETE")
    return maker.source_template % maker.source_vars()
