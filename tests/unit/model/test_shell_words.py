"""Printed commands: a shell reads each value back as it was."""

import os
import subprocess

import pytest

from logkeep.model.shell_words import shell_line, shell_word
from tests.support.hostile.corpus import SURROGATE, TEXT, problems

VALUES = (
    "plain",
    "with space",
    "it's",
    "$(reboot)",
    "a;b",
    "",
    "\\n",
    f"/{TEXT}".replace("\0", ""),
    f"x{SURROGATE[0]}'\\",
)


@pytest.mark.parametrize("value", VALUES)
def test_bash_reads_the_value_back(value: str) -> None:
    line = shell_line("printf", "%s", value)
    assert problems(line) == []
    read = subprocess.run(["bash", "-c", line], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    assert os.fsdecode(read.stdout) == value


def test_ordinary_names_are_not_quoted() -> None:
    assert shell_word("/var/lib/kafka-1") == "/var/lib/kafka-1"
