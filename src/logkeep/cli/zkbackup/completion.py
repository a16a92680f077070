"""`zkbackup completion SHELL`: the script that makes a shell complete commands and flags."""

from logkeep.cli.frame.completion_script import completion_script, shell_argument
from logkeep.cli.frame.execute import CommandAnswer
from logkeep.cli.zkbackup.command import CommandRun, ZkCommand


def completion(_run: CommandRun, shell: str) -> CommandAnswer:
    """Print the completion script for a shell.

    For bash, put `eval "$(zkbackup completion bash)"` into ~/.bashrc.
    """
    script = completion_script("zkbackup", shell)
    return CommandAnswer({"shell": shell, "script": script}, lambda _look: script)


COMMAND = ZkCommand(completion, own=(), exits=(0, 40), arguments=(shell_argument(),))
