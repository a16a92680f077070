"""What a live log has after a cut: keys that were written there, in one pass unless there are transactions."""

from collections.abc import Iterator
from contextlib import closing
from typing import cast
from uuid import UUID

from logkeep.formats.compare.vanished_keys import ROW
from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, BatchStretch, walk
from logkeep.kafka.client.settings import ClientSettings
from logkeep.kafka.deletions.compare_task import DeletionUnit
from logkeep.kafka.deletions.returning_task import LaterRecords, ReturningUnit
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.logs.live import LiveLogs, LiveRange
from logkeep.kafka.logs.row_slices import RowSlices
from logkeep.model.segments import Collection, LogName
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.memory import MemoryStore
from tests.support.kafka.slow_records import Slow, batch_of

CUT, END = 10, 40


class _Log:
    """A live log after the cut: each read gives its batches one by one."""

    def __init__(self, *batches: bytes) -> None:
        self.batches, self.reads = batches, 0

    def read(self, wanted: LiveRange, broker: int) -> Iterator[BatchStretch]:
        assert (wanted.start, wanted.end, broker) == (CUT, END, 3)
        self.reads += 1
        for each in self.batches:
            yield BatchStretch(each, walk(each).batches)


def _records(base: int, *keys: bytes | None, producer: int = -1) -> bytes:
    kind = TRANSACTIONAL if producer >= 0 else 0
    return batch_of(base, [Slow(n, 0, key, b"v") for n, key in enumerate(keys)], attributes=kind, producer=producer)


def _marker(base: int, producer: int, *, commits: bool) -> bytes:
    record = Slow(0, 0, b"\0\0\0" + bytes([commits]), bytes(6))
    return batch_of(base, [record], attributes=TRANSACTIONAL | CONTROL, producer=producer)


def _offsets(log: _Log) -> tuple[list[int], int]:
    place = SourceRef(MemoryStore(), "r", "prod")
    name = LogName(Collection.TOPICS, "users", UUID(int=5).hex, 0)
    brokers = SettingsBrokers(ClientSettings(()))
    unit = DeletionUnit(place, name, UUID(int=5), 0, CUT, (), (), brokers, 3, 0, (1, 2))
    later = LaterRecords(ReturningUnit(unit, END), cast(LiveLogs, log))
    with closing(RowSlices(1, ROW)) as slices:
        later.collect(slices, lambda _: None)
        (rows,) = slices
    return sorted(rows["offset"].tolist()), later.count


def test_a_log_without_transactions_is_read_once() -> None:
    log = _Log(_records(10, b"a", None, b"b"), _records(13, b"c"))
    assert _offsets(log) == ([10, 12, 13], 4)
    assert log.reads == 1


def test_only_committed_records_of_transactions_count() -> None:
    log = _Log(
        _records(10, b"a"),
        _records(11, b"kept", producer=7),
        _records(12, b"gone", producer=8),
        _records(13, b"b"),
        _marker(14, 8, commits=False),
        _marker(15, 7, commits=True),
        _records(16, b"open", producer=9),
    )
    assert _offsets(log) == ([10, 11, 13], 7)
    assert log.reads == 2
