"""Records of a moment or later stay out wherever they stand: of what is read, and of what is sent."""

from collections.abc import Iterator
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batches import BatchStretch, walk
from logkeep.formats.kafka.record_view import View, visible_records
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.formats.kafka.restore.send_batches import OffsetHole, outgoing, stamp
from tests.property.untimed import untimed
from tests.support.kafka.log_strategies import Shaped, shaped_logs

Found = list[tuple[int, bytes | None, bytes | None]]


def _plain(parts: Iterator[RecordColumns]) -> Found:
    return [(int(p.times_ms[row]), p.key(row), p.value(row)) for p in parts for row in range(len(p))]


@untimed
@given(shaped_logs(), st.integers(0, 70), st.booleans())
def test_later_records_stay_out(log: Shaped, before_ms: int, keep: bool) -> None:
    data, end = b"".join(b.encode() for b in log), log[-1].last + 1 if log else 0
    view = View(0, end, None, keep, before_ms)
    wanted = [s for b in log for s in b.seen if not s.control and s.time_ms < before_ms]
    expected = [(s.time_ms, s.record.key, s.record.value) for s in wanted]
    stretch = BatchStretch(data, walk(data).batches)
    assert _plain(visible_records([stretch], view)) == expected
    parts = list(outgoing([stretch], view))
    sent, covered = Found(), 0
    for part in parts:
        if isinstance(part, OffsetHole):
            covered += part.length
            continue
        stamp(part, 1, 0, 0)
        covered += int(part.records.sum())
        for at, size in zip(part.positions.tolist(), part.sizes.tolist(), strict=True):
            one = part.buffer[at : at + size].tobytes()
            read = (p for p in decode(one, walk(one).batches) if isinstance(p, RecordColumns))
            sent += _plain(read)
    assert sent == expected
    runs = chain.from_iterable(
        range(s, s + n) for p in parts if not isinstance(p, OffsetHole) for s, n in p.runs.tolist()
    )
    assert list(runs) == [s.offset for s in wanted]
    assert covered == (end if keep else len(wanted))
