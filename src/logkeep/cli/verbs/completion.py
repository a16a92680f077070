"""`logkeep completion SHELL`: the script that makes a shell complete verbs and flags."""

import click
import msgspec
from click.shell_completion import get_completion_class

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.errors import UsageError

_SHELLS = ("bash", "zsh", "fish")


class CompletionReport(msgspec.Struct, frozen=True, kw_only=True):
    shell: str
    script: str


def _text(report: CompletionReport, _look: TerminalStyle) -> str:
    return _script(report.shell)  # the field has its newlines escaped here, as every value has


@verb(
    report=CompletionReport,
    text=_text,
    arguments=(click.Argument(["shell"], type=click.Choice(_SHELLS), metavar="SHELL"),),
    configured=False,
    examples=(
        'bash:  eval "$(logkeep completion bash)"      (in ~/.bashrc)',
        'zsh:   eval "$(logkeep completion zsh)"       (in ~/.zshrc)',
        "fish:  logkeep completion fish | source       (in ~/.config/fish/config.fish)",
    ),
)
def completion(_run: Run, shell: str) -> CompletionReport:
    """Print the completion script for a shell."""
    return CompletionReport(shell=shell, script=_script(shell))


def _script(shell: str) -> str:
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"there is no completion for {shell}", remedy=f"choose one of {', '.join(_SHELLS)}")
    maker = kind(click.Command("logkeep"), {}, "logkeep", "_LOGKEEP_COMPLETE")
    return maker.source_template % maker.source_vars()
