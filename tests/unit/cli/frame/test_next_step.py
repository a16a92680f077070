"""The next step after a verb: shown to people on a terminal, on lines of their own, and not to scripts."""

import io
import os
import pty
import re
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logkeep.cli.frame.catalogue import VERBS, VerbEntry
from logkeep.cli.frame.verb import verb
from logkeep.cli.terminal.console import Console
from logkeep.cli.terminal.next_step import NextStep
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.next_steps import after_application_backup, after_init, after_verify
from logkeep.config.option import Option
from logkeep.errors import Declined
from tests.support.cli.filled_repository import fill
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


def test_verify_repeats_the_flags_that_found_the_repository(tmp_path: Path) -> None:
    repo = fill(tmp_path)
    told = on_terminal(tmp_path, "verify", str(repo.ids[0]), "-r", repo.url, "--color", "never")
    assert f"\n  logkeep drill {repo.ids[0]} --embedded -r {repo.url}\n" in told


WRITERS = re.compile("init|verify|salvage|(.* )?(backup|import|restore|restore-subtree)")
WITHOUT = {
    "zeebe backup": "it ends with its own verification",
}


@pytest.mark.parametrize("entry", [e for e in VERBS if WRITERS.fullmatch(e.words)], ids=lambda entry: entry.words)
def test_what_writes_names_a_next_step(entry: VerbEntry) -> None:
    named = entry.load().job.next_step.__module__ != verb.__module__
    assert named == (entry.words not in WITHOUT)


class _Typed:
    """The settings of a call without a flag; some are set by variables."""

    def __init__(self, **found: object) -> None:
        self._found = found

    def typed(self, _option: object) -> bool:
        return False

    def __getitem__(self, option: Option[Any]) -> object:
        return self._found.get(option.name.replace("-", "_"))


def _commands(step: NextStep | None) -> tuple[str, ...]:
    return tuple(step.commands) if step is not None else ()


def test_after_init_addresses_that_are_set_are_not_named() -> None:
    run: Any = SimpleNamespace(settings=_Typed(bootstrap_servers="broker:9092", zk_host=("server:2181",)))
    kafka, zookeeper = _commands(after_init(run, SimpleNamespace()))  # type: ignore[arg-type]  # it reads nothing of it
    assert kafka == "logkeep kafka backup"
    assert zookeeper == "logkeep zookeeper backup --data-dir /var/lib/zookeeper"


@pytest.mark.parametrize(
    ("kind", "told"),
    (
        ("kafka", "logkeep drill 7 --embedded"),
        ("zookeeper", "logkeep drill 7 --embedded"),
        ("application", "logkeep drill 7"),
        ("zeebe", "logkeep drill 7"),
    ),
)
def test_after_verify_it_is_what_the_kind_has(kind: str, told: str) -> None:
    run: Any = SimpleNamespace(settings=_Typed())
    report: Any = SimpleNamespace(verdict="good", health="good", kind=kind, id=7, source="shop")
    assert _commands(after_verify(run, report)) == (told,)
    report.verdict = "damaged"
    assert after_verify(run, report) is None


@pytest.mark.parametrize(
    ("state", "told"),
    (
        ("completed", ("logkeep verify 7 --level cut",)),
        ("ongoing", ("logkeep app status 7",)),
        ("failed", ()),
    ),
)
def test_after_the_backup_of_an_application_it_follows_the_state(state: str, told: tuple[str, ...]) -> None:
    run: Any = SimpleNamespace(settings=_Typed())
    report: Any = SimpleNamespace(state=state, id=7)
    assert _commands(after_application_backup(run, report)) == told


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
