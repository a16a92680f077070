"""The task of an export, with records from a list: repeated attempts, and a log that lost its end and grew again."""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from logkeep.errors import TargetUnsafe
from logkeep.kafka.datasets.export_task import ExportUnit, export_logs
from logkeep.kafka.datasets.formats import DatasetOptions
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import ExportableLog, LogToExport, ReadCounts
from logkeep.kafka.record.dataset_document import DatasetLog
from logkeep.model.work import Progress
from logkeep.store.local.store import LocalStore
from tests.support.kafka.arrow_rows import ArrowRow, record_batch
from tests.support.kafka.v1_reader import records

LOG = DatasetLog("orders", 0)


@dataclass(frozen=True)
class Listed:
    """A source whose records are a list."""

    rows: Sequence[ArrowRow]
    fails_at: int = 1 << 60

    @contextmanager
    def opened(self) -> Iterator["Listed"]:
        yield self

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        for row in self.rows:
            if row[0] >= self.fails_at:
                raise OSError("the connection broke")
            if start <= row[0] < planned.end:
                yield record_batch([row])


def rows(*offsets: int, value: bytes = b"v") -> list[ArrowRow]:
    return [(offset, 0, 0, b"k", value, []) for offset in offsets]


def exported(root: Path, source: Listed, end: int, *, start: int = 0, live: bool = True) -> int:
    root.mkdir(exist_ok=True)
    log = LogToExport(ExportableLog(LOG, "a" * 32, 0, end, broker=1 if live else -1), start, joined=True)
    unit = ExportUnit(DatasetTarget(LocalStore(root), root), "kafka-backup-v1", DatasetOptions(100), source, (log,))
    (done,) = export_logs(unit, lambda _: None).logs
    return done.records


def test_a_repeated_attempt_continues_where_the_dataset_ends(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="broke"):
        exported(tmp_path / "d", Listed(rows(0, 1, 2, 3, 4), fails_at=4), 5)
    exported(tmp_path / "d", Listed(rows(0, 1, 2, 3, 4)), 5)
    assert [each.offset for each in records(tmp_path / "d" / "orders", 0)] == [0, 1, 2, 3, 4]
    exported(tmp_path / "one", Listed(rows(0, 1, 2, 3, 4)), 5)
    one, again = ({p.name: p.read_bytes() for p in (tmp_path / d / "orders").iterdir()} for d in ("one", "d"))
    assert one == again


def test_the_last_record_is_compared_with_the_live_log(tmp_path: Path) -> None:
    root = tmp_path / "d"
    exported(root, Listed(rows(0, 1, 2)), 3)
    before = {p.name: p.read_bytes() for p in (root / "orders").iterdir()}
    with pytest.raises(TargetUnsafe, match="another record at offset 2"):
        exported(root, Listed([*rows(0, 1), *rows(2, 3, value=b"other")]), 4, start=3)
    assert {p.name: p.read_bytes() for p in (root / "orders").iterdir()} == before
    assert exported(root, Listed(rows(0, 1, 3)), 4, start=3) == 1, "compaction removed it, so nothing is known"
    assert exported(root, Listed(rows(0, 1, 3, 4)), 5, start=4) == 1
    assert [each.offset for each in records(root / "orders", 0)] == [0, 1, 2, 3, 4]


@dataclass(frozen=True)
class Shortened(Listed):
    """Retention moves the log start before the first record is read."""

    log_start: int = 0

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        counts.lost.append((start, self.log_start))
        yield from super().read(planned, self.log_start, counts, progress)


def test_the_record_that_is_compared_is_not_lost(tmp_path: Path) -> None:
    root = tmp_path / "d"
    exported(root, Listed(rows(0, 1, 2)), 3)
    log = LogToExport(ExportableLog(LOG, "a" * 32, 0, 6, broker=1), 3, joined=True, last=2)
    for log_start, lost in ((3, ()), (5, ((3, 5),))):
        source = Shortened(rows(5) if lost else (), log_start=log_start)
        unit = ExportUnit(DatasetTarget(LocalStore(root), root), "kafka-backup-v1", DatasetOptions(9), source, (log,))
        (done,) = export_logs(unit, lambda _: None).logs
        assert done.lost == lost


def test_archived_logs_are_known_by_their_history(tmp_path: Path) -> None:
    root = tmp_path / "d"
    exported(root, Listed(rows(0, 1)), 2, live=False)
    source = replace(Listed(rows(1, value=b"not read")), rows=[*rows(1, value=b"other"), *rows(2)])
    assert exported(root, source, 3, start=2, live=False) == 1


@dataclass(frozen=True)
class Watched(Listed):
    """Notes how many of its batches are in memory when it makes the next one."""

    alive: set[int] = field(default_factory=set)

    def read(
        self, planned: LogToExport, start: int, counts: ReadCounts, progress: Progress
    ) -> Iterator[pa.RecordBatch]:
        made: list[weakref.ref[pa.RecordBatch]] = []
        for row in self.rows:
            self.alive.add(sum(each() is not None for each in made))
            yield _noted(record_batch([row]), made)


def _noted(batch: pa.RecordBatch, made: list["weakref.ref[pa.RecordBatch]"]) -> pa.RecordBatch:
    made.append(weakref.ref(batch))
    return batch


def test_a_batch_is_freed_before_the_next_one_is_made(tmp_path: Path) -> None:
    source = Watched(rows(0, 1, 2, 3, 4))
    assert exported(tmp_path / "d", source, 5) == 5
    assert source.alive == {0}
