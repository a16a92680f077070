"""`logkeep completion SHELL`: the script that makes a shell complete verbs and flags."""

import msgspec

from logkeep.cli.frame.completion_script import completion_script, shell_argument
from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.text import TerminalStyle


class CompletionReport(msgspec.Struct, frozen=True, kw_only=True):
    shell: str
    script: str


def _text(report: CompletionReport, _look: TerminalStyle) -> str:
    return completion_script("logkeep", report.shell)  # the field has its newlines escaped here, as every value has


@verb(
    report=CompletionReport,
    text=_text,
    arguments=(shell_argument(),),
    configured=False,
    examples=(
        'bash:  eval "$(logkeep completion bash)"      (in ~/.bashrc)',
        'zsh:   eval "$(logkeep completion zsh)"       (in ~/.zshrc)',
        "fish:  logkeep completion fish | source       (in ~/.config/fish/config.fish)",
    ),
)
def completion(_run: Run, shell: str) -> CompletionReport:
    """Print the completion script for a shell."""
    return CompletionReport(shell=shell, script=completion_script("logkeep", shell))
