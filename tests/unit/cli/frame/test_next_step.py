"""The next step after a verb: shown to people on a terminal, on lines of their own, and not to scripts."""

import io
import os
import pty
import re
import subprocess
import threading
from pathlib import Path

import pytest

from logkeep.cli.terminal.console import Console
from logkeep.cli.terminal.next_step import NextStep
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.errors import Declined
from tests.support.cli.processes import REAL, clean_environment, logkeep

URL = "file:///srv/a repository with a long name/below a long directory/and another one"


def test_commands_have_lines_of_their_own_and_are_never_wrapped() -> None:
    long = f"logkeep kafka backup -r '{URL}' --bootstrap-servers localhost:9092"
    text = NextStep("take a first backup, of Kafka or of ZooKeeper", (long, "logkeep list")).text(
        TerminalStyle(width=40)
    )
    assert f"\n  {long}\n" in text
    assert max(len(line) for line in text.partition("\n  logkeep")[0].splitlines()) <= 40


def on_terminal(home: Path, *words: str) -> str:
    """What the command prints to stderr when that is a terminal."""
    ours, theirs = pty.openpty()
    seen: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(ours, 4096):
                seen.append(data)
        except OSError:
            return  # the last writer has closed it

    reader = threading.Thread(target=read)
    reader.start()
    try:
        environ = clean_environment(home)
        done = subprocess.run(
            [*REAL, *words], env=environ, cwd=home, stdout=subprocess.DEVNULL, stderr=theirs, timeout=120, check=False
        )
    finally:
        os.close(theirs)
        reader.join(timeout=30)
        os.close(ours)
    assert done.returncode == 0
    return re.sub(r"[^\n]*\r\x1b\[K", "", b"".join(seen).decode().replace("\r\n", "\n"))  # without the live line


def test_init_names_the_next_command(tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'repo'}"
    told = on_terminal(tmp_path, "init", "-r", url, "--color", "never")
    assert "\nnext: take a first backup, of Kafka or of ZooKeeper\n" in f"\n{told}"
    assert f"\n  logkeep kafka backup --bootstrap-servers localhost:9092 -r {url}\n" in told


@pytest.mark.parametrize("flag", ("--quiet", "--json", "--dry-run"))
def test_not_for_scripts(tmp_path: Path, flag: str) -> None:
    assert "next:" not in on_terminal(tmp_path, "init", "-r", f"file://{tmp_path / 'repo'}", flag)


def test_not_where_no_person_reads_it(tmp_path: Path) -> None:
    done = logkeep("init", "-r", f"file://{tmp_path / 'repo'}", home=tmp_path)
    assert "next:" not in done.stdout + done.stderr


def test_a_question_is_wrapped_at_spaces() -> None:
    screen, look = io.StringIO(), TerminalStyle(width=40)
    console = Console(screen, screen, look=look, err_look=look, interactive=True, read=io.StringIO("n\n"))
    with pytest.raises(Declined):
        console.confirm("restore up to 1,234,567 records to 89 topics of the cluster kafka-production-west?")
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 41
    assert " ".join(line.strip() for line in lines).endswith("kafka-production-west? [y/N]")
