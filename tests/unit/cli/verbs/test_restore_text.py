"""Restores on terminals of any width: lines stay lines, ids and numbers stay whole, bad news comes first."""

from datetime import UTC

import msgspec
import pytest

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.list import backup_table
from logkeep.cli.verbs.receipts import list_receipts, show
from logkeep.cli.verbs.restore_text import restore_cell, restore_line
from logkeep.reports.backups import BackupRow
from logkeep.reports.restores import LastRestore, ReceiptReport, ReceiptsReport, RestoreLine, last_of_all
from tests.support.scripted.restores import GROUP, NEW, PARTITION, TARGET

LINE = RestoreLine(
    source="production-cluster",
    id=20261116021500,
    state="proven",
    backup=NEW.backup,
    drill=True,
    started="2026-11-16T02:15:00.123Z",
    finished="2026-11-16T02:15:12.345Z",
    duration_s=12.222,
    receipts=2,
    interrupted=False,
    trouble=None,
)
GONE = msgspec.structs.replace(LINE, state="ongoing", finished=None, duration_s=None, interrupted=True)
LAST = LastRestore(
    id=20261116021500,
    backup=NEW.backup,
    drill=True,
    state="proven",
    finished="2026-11-16T02:15:12.345Z",
    duration_s=12.2,
)
LONG = msgspec.structs.replace(
    PARTITION,
    source_topic="a.long.name.of.a.topic.that.somebody.chose",
    topic="restored.a.long.name.of.a.topic.that.somebody.chose",
    records=1_234_567_890,
    bytes=10**12,
    end=9_876_543_210,
    outcome="foreign-writer",
    detail="offset 17 was taken by somebody else while the restore was under way",
)


def look(width: int) -> TerminalStyle:
    return TerminalStyle(unicode=True, width=width, zone=UTC)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_lists_fit(width: int) -> None:
    report = ReceiptsReport(url="file:///r", restores=(LINE, GONE))
    lines = list_receipts.job.text(report, look(width)).splitlines()
    assert len(lines) == 3
    assert all(len(line) <= width for line in lines)
    for part in ("20261116021500", str(NEW.backup), "drill", "proven", "12 s"):
        assert part in lines[1]
    assert lines[2].endswith("interrupted")
    several = ReceiptsReport(url="file:///r", restores=(LINE, msgspec.structs.replace(LINE, source="b")))
    assert "production-cluster" in list_receipts.job.text(several, look(width))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_receipts_fit(width: int) -> None:
    report = ReceiptReport(
        restore=LINE,
        kind="kafka",
        target=TARGET,
        who="ops",
        options={},
        partitions=(PARTITION, LONG),
        groups=(GROUP, msgspec.structs.replace(GROUP, group="g" * 70, offset=None, detail="it has members: c-1")),
    )
    lines = show.job.text(report, look(width)).splitlines()
    assert f"{LONG.topic}/0: {LONG.detail}" in lines, "a detail is never cut"
    assert all(len(line) <= width for line in lines if ": " not in line)
    table = next(i for i, line in enumerate(lines) if line.startswith("FROM"))
    assert "foreign-writer" in lines[table + 1]
    assert "1,234,567,890" in lines[table + 1]
    assert "done" in lines[table + 2]
    groups = next(i for i, line in enumerate(lines) if line.startswith("GROUP"))
    assert lines[groups + 1].startswith("gggg")


@pytest.mark.parametrize("width", [80, 200])
def test_the_last_drill_in_the_list_of_backups(width: int) -> None:
    rows = [
        BackupRow(source="prod", id=20261115001348, state="completed", committed="2026-11-15T00:14:00.000Z", logs=1),
        BackupRow(
            source="prod", id=NEW.backup, state="completed", committed="2026-11-16T00:14:00.000Z", last_restore=LAST
        ),
    ]
    lines = backup_table(rows, look(width)).splitlines()
    assert all(len(line) <= width for line in lines)
    assert lines[2].endswith("drill: proven 2026-11-16 RTO 12 s")
    assert "RESTORED" not in backup_table(rows[:1], look(width))


def test_only_what_came_back_has_a_recovery_time() -> None:
    failed = msgspec.structs.replace(LAST, state="failed", drill=False)
    assert restore_cell(failed, look(80)) == "restore: failed 2026-11-16"
    assert restore_cell(msgspec.structs.replace(LAST, state="unproven"), look(80)).endswith("RTO 12 s")
    assert restore_line(LAST, look(80)) == f"drill of {NEW.backup}: proven 2026-11-16 02:15:12 +0000 RTO 12 s"
    assert restore_line(None, look(80)) == "never"


def test_the_last_of_all_is_the_one_that_finished_last() -> None:
    earlier = msgspec.structs.replace(LAST, id=LAST.id + 5, finished="2026-11-15T02:15:12.345Z")
    assert last_of_all([earlier, LAST]) == last_of_all([LAST, earlier]) == LAST
    assert last_of_all([]) is None
