"""Tables, sizes, times, symbols: text out of values."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkeep.cli.frame.error_text import as_text
from logkeep.cli.terminal.text import TerminalStyle, cell_width, count, duration, size
from logkeep.cli.verbs.kafka.backup import backup
from logkeep.cli.verbs.kafka.backup_report import KafkaBackupReport
from logkeep.cli.verbs.list import backup_table
from logkeep.errors import LogkeepError
from logkeep.model.findings import Finding, Severity
from logkeep.reports.backups import BackupRow

ROWS = [("orders", "12", "an unusually long remark that does not fit"), ("日本", "3", "short")]


@pytest.mark.parametrize(
    ("amount", "text"),
    (
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1288490189, "1.2 GiB"),
        (1024**2 - 1, "1.0 MiB"),
        (2**70, "1048576.0 PiB"),
    ),
)
def test_sizes(amount: int, text: str) -> None:
    assert size(amount) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    (
        (0, "0.0 s"),
        (9.94, "9.9 s"),
        (12.4, "12 s"),
        (59.7, "1 min"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
        (273600, "3 d 4 h"),
    ),
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
    assert duration(timedelta(seconds=seconds)) == text


def test_counts() -> None:
    assert count(1234567) == "1,234,567"


def test_times_have_a_zone() -> None:
    moment = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    assert TerminalStyle(zone=timezone(timedelta(hours=1))).moment(moment) == "2026-11-15 10:30:00 +0100"
    assert TerminalStyle(zone=UTC).moment(moment) == "2026-11-15 09:30:00 +0000"
    assert TerminalStyle().moment(None) == "-"


def test_tables_align_and_never_wrap() -> None:
    table = TerminalStyle(unicode=True, width=40).table(("NAME", "N", "REMARK"), ROWS, right="N")
    assert table.splitlines() == [
        "NAME     N  REMARK",
        "orders  12  an unusually long remark th…",
        "日本     3  short",
    ]
    wide = TerminalStyle(unicode=True).table(("NAME", "N", "REMARK"), ROWS)
    assert "does not fit" in wide


def test_narrow_tables_leave_out_columns_before_they_cut() -> None:
    headers, row = ("ID", "SIZE", "NOTES"), ("20261115103000", "1.2 KiB", "held: before the migration")
    shown = TerminalStyle(unicode=True, width=40).table(headers, [row], right="ID,SIZE", spare="SIZE", free="NOTES")
    assert shown.splitlines()[1] == "20261115103000  held: before the migrat…"
    wide = TerminalStyle(unicode=True, width=60).table(headers, [row], right="ID,SIZE", spare="SIZE", free="NOTES")
    assert wide.splitlines()[1] == "20261115103000  1.2 KiB  held: before the migration"


@pytest.mark.parametrize("width", (20, 60, 80, 100, 140))
def test_a_list_of_backups_never_cuts_an_id_or_a_time(width: int) -> None:
    rows = [
        BackupRow(
            source="prod", id=20261115103000 + i, state="completed", committed="2026-11-15T10:30:00Z", logs=3,
            records=10**6, stored_bytes=10**9, new_bytes=10**6, held="before the migration" * i,
        )
        for i in range(2)
    ]  # fmt: skip
    shown = backup_table(rows, TerminalStyle(unicode=True, width=width, zone=UTC))
    assert all(str(row.id) in shown for row in rows)
    assert "2026-11-15 10:30 +0000" in shown or "COMMITTED" not in shown
    assert width < 60 or max(map(len, shown.splitlines())) <= width


def test_stored_text_does_not_command_the_terminal() -> None:
    table = TerminalStyle(unicode=True).table(("A", "B"), [("x\x1b[2Jy\nz", "\u2028")])
    assert table.splitlines()[1] == "x\\x1b[2Jy\\nz  \\u2028"
    assert TerminalStyle(unicode=True).pairs({"a": "x\ry"}) == "a  x\\ry"


def test_ascii_twins() -> None:
    assert TerminalStyle().text("a → b … ≥ 3 × ü") == "a -> b ... >= 3 x \\xfc"
    assert TerminalStyle(unicode=True).text("a → ü") == "a → ü"


def test_colour_only_where_wanted_and_never_alone() -> None:
    assert TerminalStyle().state("FAIL") == "FAIL"
    assert TerminalStyle(colour=True).state("FAIL") == "\x1b[31mFAIL\x1b[0m"


def test_what_is_whole_is_never_cut() -> None:
    look = TerminalStyle(unicode=True, width=30)
    table = look.table(("OP", "NOTE", "PATH"), [("delete", "x" * 40, "/a/long/path/to/a/node")], whole="OP,PATH")
    assert table.splitlines()[1] == f"delete  {'x' * 11}…  /a/long/path/to/a/node"
    spared = look.table(("OP", "NOTE", "PATH"), [("delete", "xyz", "/a/long/path")], spare="NOTE", whole="OP,PATH")
    assert spared.splitlines()[1] == "delete  xyz   /a/long/path"


def test_pairs() -> None:
    assert TerminalStyle(unicode=True).pairs({"id": "1", "source": "prod"}) == "id      1\nsource  prod"
    narrow = TerminalStyle(unicode=True, width=20).pairs({"id": "one two three four", "source": "x" * 30})
    assert narrow == f"id      one two\n        three four\nsource  {'x' * 30}"


@given(st.lists(st.tuples(st.text(max_size=60), st.text(max_size=60)), max_size=5), st.integers(40, 120), st.booleans())
def test_any_text_fits_the_terminal(rows: list[tuple[str, str]], width: int, unicode: bool) -> None:
    clean = [tuple(" ".join(cell.split()) for cell in row) for row in rows]
    table = TerminalStyle(unicode=unicode, width=width).table(("A", "B"), clean)
    for line in table.split("\n"):
        assert cell_width(line) <= width


def test_a_backup_is_reported_without_a_cut_id_on_a_narrow_terminal() -> None:
    cluster = "V57hrtrVQY2m6KfRdnRbnA"
    report = KafkaBackupReport(
        source="prod", id=20261118063258, cluster_id=cluster, topics=3, partitions=8, groups=1, open_transactions=0,
        units=1, new_offsets=173_012, new_bytes=156_000_000, stored_bytes=0, gaps=(), findings=(), allow_gaps=False,
        dry_run=False,
    )  # fmt: skip
    lines = backup.job.text(report, TerminalStyle(unicode=True, width=80)).splitlines()
    assert all(cell_width(line) <= 80 for line in lines)
    assert cluster in " ".join(lines).split()


def test_findings_and_errors_do_not_command_a_terminal() -> None:
    bad = "topic \x1b[2J\r\x9b31m\u2028"
    finding = Finding(code="x", severity=Severity.WARNING, where=bad, what=bad)
    report = KafkaBackupReport(
        source="prod", id=1, cluster_id=bad, topics=1, partitions=1, groups=0, open_transactions=0, units=0,
        new_offsets=0, new_bytes=0, stored_bytes=0, gaps=(bad,), findings=(finding,), allow_gaps=False, dry_run=False,
    )  # fmt: skip
    error = LogkeepError(bad, subject=bad, remedy=bad)
    for text in (backup.job.text(report, TerminalStyle(unicode=True)), as_text(error, TerminalStyle(unicode=True))):
        assert not any(c in text for c in "\x1b\r\x9b\u2028")
        assert "\\x1b[2J" in text
