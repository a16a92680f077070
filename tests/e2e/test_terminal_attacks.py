"""Attacks on whoever reads the terminal or the log: forged leases, findings, cluster ids, documents and log lines."""

import io
import logging
import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from logkeep.cli.frame.execute import Run
from logkeep.cli.frame.logs import set_up_logs, take_down_logs
from logkeep.cli.frame.world import World
from logkeep.cli.terminal.console import Console
from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.backup_report import KafkaRound, TopicThreat
from logkeep.cli.verbs.kafka.backup_report import round_text as kafka_line
from logkeep.cli.verbs.kafka.follow import _KafkaReporter
from logkeep.cli.verbs.kafka.restore_report import KafkaRestoreReport, confirm_plan
from logkeep.cli.verbs.zookeeper.backup_report import ZooKeeperRound
from logkeep.cli.verbs.zookeeper.backup_report import round_text as zookeeper_line
from logkeep.config.load import load
from logkeep.config.places import NOWHERE
from logkeep.errors import Declined
from logkeep.model.findings import Finding, Severity
from tests.support.hostile.broker import HostileBroker
from tests.support.hostile.calls import on_terminal, piped
from tests.support.hostile.corpus import STRINGS, TEXT, problems
from tests.support.hostile.documents import Rewriter, texts
from tests.support.hostile.repositories import TOPIC, changeable, held_lease, kafka_repository

pytestmark = pytest.mark.xdist_group("hostile-values")

FORGED_LEASE = "backup\x1b[2K\r\x1b[1A\x1b]0;owned\x07OK: prod is free"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("attacks") / "repo"
    kafka_repository(root)
    return root


@pytest.fixture
def repo(stored: Path, tmp_path: Path) -> Path:
    return shutil.copytree(stored, tmp_path / "repo")


def _at(repo: Path) -> list[str]:
    return ["-r", f"file://{repo}"]


def test_a_forged_lease_in_unlock(repo: Path) -> None:
    held_lease(repo, operation=FORGED_LEASE)
    shown = piped("logkeep", ["unlock", "--dry-run", *_at(repo)], repo)
    assert problems(shown.text) == []
    assert "backup\\x1b[2K\\r\\x1b[1A\\x1b]0;owned\\x07OK: prod is free" in shown.text


def test_the_question_of_unlock_cannot_be_overwritten(repo: Path) -> None:
    held_lease(repo, operation=FORGED_LEASE)
    shown = on_terminal("logkeep", ["unlock", *_at(repo)], repo)
    assert problems(shown.text, terminal=True) == []
    assert shown.text.startswith("prod is held: backup\\x1b[2K")
    assert "Remove the lease? [y/N] " in shown.text


def test_a_lease_of_a_megabyte_does_not_push_the_question_off_the_screen(repo: Path) -> None:
    held_lease(repo, operation="x" * 900_000)
    shown = on_terminal("logkeep", ["unlock", *_at(repo)], repo)
    assert len(shown.text) < 2_000
    assert "[y/N]" in shown.text


@pytest.mark.parametrize("text", STRINGS)
def test_findings_of_a_followed_source(text: str) -> None:
    err, look = io.StringIO(), TerminalStyle(unicode=True)
    console = Console(io.StringIO(), err, look=look, err_look=look, interactive=False, read=io.StringIO())
    run: Any = SimpleNamespace(console=console)
    reporter = _KafkaReporter.__new__(_KafkaReporter)
    reporter.run, reporter._printed = run, set()
    finding = Finding(code="gap", severity=Severity.WARNING, where=f"orders{text}", what=f"what{text}")
    one: Any = SimpleNamespace(merged=None)
    report: Any = SimpleNamespace(findings=(finding,))
    reporter._print_new_findings(one, report)
    assert problems(err.getvalue()) == []
    assert err.getvalue().count("\n") == 1


@pytest.mark.parametrize("kind", ["kafka", "zookeeper"])
def test_the_line_of_a_round(kind: str) -> None:
    """Topics, gaps and the text of an error, in the line that `--follow` prints."""
    common: Any = {
        "round": 1,
        "new_bytes": 0,
        "findings": 0,
        "merged_objects": 0,
        "seconds": 1.0,
        "again_in_seconds": 1.0,
    }
    threat = TopicThreat(topic=TEXT, overtaken_in_seconds=1.0)
    of_kafka = KafkaRound(
        **common, id=7, changed=True, new_offsets=1, lag_offsets=1, lag_bytes=1, threats=(threat,), gaps=(TEXT,),
        error="e", message=TEXT, catch_up=TEXT,
    )  # fmt: skip
    of_zookeeper = ZooKeeperRound(**common, id=7, backup_zxid=TEXT, behind_seconds=0.0, error="e", message=TEXT)
    out, look = io.StringIO(), TerminalStyle(unicode=True)
    console = Console(out, io.StringIO(), look=look, err_look=look, interactive=False, read=io.StringIO())
    run = Run(load({}, {}, NOWHERE).settings, console, World({}, console, lambda _: NOWHERE))
    if kind == "kafka":
        run.line(kafka_line, of_kafka)
    else:
        run.line(zookeeper_line, of_zookeeper)
    shown = out.getvalue()
    assert problems(shown) == []
    assert (shown.count("\n"), shown.count("\\x1b[2K")) == (1, 4 if kind == "kafka" else 2)


def test_the_cluster_id_of_a_broker_in_the_plan_of_a_restore(repo: Path) -> None:
    with HostileBroker(topic=TOPIC) as broker:
        words = ["kafka", "restore", "latest", *_at(repo), "--bootstrap-servers", broker.address, "--dry-run"]
        shown = on_terminal("logkeep", words, repo)
    assert problems(shown.text, terminal=True) == []
    assert "to cluster \\x1b[2K" in shown.text


def test_the_same_before_the_question_whether_to_overwrite() -> None:
    err, look = io.StringIO(), TerminalStyle(unicode=True, colour=True, width=80)
    console = Console(io.StringIO(), err, look=look, err_look=look, interactive=True, read=io.StringIO("n\n"))
    run = Run(load({}, {}, NOWHERE).settings, console, World({}, console, lambda _: NOWHERE))
    planned = KafkaRestoreReport(
        source="prod", backup=3, restore=7, cluster_id=TEXT, offsets="preserve", why=TEXT, topics=(TEXT,), records=3,
        bytes=99, seconds=1.0, verdict="", partitions=(), groups=(), group_names=(TEXT,), refusals=(TEXT,), findings=(),
        dry_run=True,
    )  # fmt: skip
    with pytest.raises(Declined):
        confirm_plan(run, planned, f"write to {TEXT}?", own_cluster=TEXT)
    assert problems(err.getvalue(), terminal=True) == []
    assert err.getvalue().count("to cluster \\x1b[2K") == 1


def test_check_shows_what_a_document_says(repo: Path) -> None:
    Rewriter(repo, lambda kind, field, _text: (kind, field) == ("format", "repository")).rewrite()
    shown = piped("logkeep", ["check", *_at(repo)], repo)
    assert problems(shown.text) == []
    assert "OK    repository: " in shown.text
    assert "\\x1b]52;c;" in shown.text


def test_a_name_cannot_begin_a_log_line(repo: Path, tmp_path: Path) -> None:
    held_lease(repo, operation=f"backup{TEXT}")
    log = tmp_path / "run.log"
    piped("logkeep", ["delete", "1", "-y", *_at(repo), "--log-file", str(log)], repo)
    assert "\\n2026-11-18T00:00:00.000000Z info" in log.read_text()
    assert problems(log.read_text()) == []


@pytest.mark.parametrize("text", STRINGS)
def test_neither_can_the_text_of_an_exception(text: str, capsys: pytest.CaptureFixture[str]) -> None:

    err, look = io.StringIO(), TerminalStyle(unicode=True)
    console = Console(io.StringIO(), err, look=look, err_look=look, interactive=False, read=io.StringIO())
    before = list(logging.getLogger().handlers)
    handler = set_up_logs(console, level="info", form="text", file=None)
    try:
        raised = ValueError(f"no{text}")
        raised.add_note(f"note{text}")
        raised.__cause__ = OSError(f"cause{text}")
        logging.getLogger("logkeep").error("failed %s", text, exc_info=raised, extra={"name_": text})
    finally:
        take_down_logs(handler)
        logging.getLogger().handlers[:] = before
    first, *rest = err.getvalue().splitlines()
    assert problems(err.getvalue()) == []
    assert first.endswith("[logkeep]")
    assert all(line.startswith("  ") for line in rest)
    assert capsys.readouterr().err == ""


def _is_field(wanted: str, _kind: str, field: str, _text: str) -> bool:
    return field == wanted


def test_texts_that_readers_compare_or_parse(stored: Path, tmp_path: Path) -> None:
    """Field by field: each makes documents unreadable, and the error says which."""
    ended = set()
    others = Rewriter(shutil.copytree(stored, tmp_path / "others"), changeable).rewrite().changed
    for name in sorted({field for _, field in texts(stored) - others}):
        repo = shutil.copytree(stored, tmp_path / name)
        assert Rewriter(repo, partial(_is_field, name)).rewrite().changed
        shown = [piped("logkeep", [*words, *_at(repo)], repo) for words in (["info", "latest"], ["status"])]
        assert [problems(one.text) for one in shown] == [[], []], name
        ended |= {one.code for one in shown}
    assert ended >= {0, 10}
