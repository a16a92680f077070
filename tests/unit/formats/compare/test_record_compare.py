"""Batches whose record bytes are the same and whose times are not."""

from logkeep.formats.compare.record_compare import LogSide, PairedComparison
from logkeep.formats.kafka.batches import APPEND_TIME, BatchStretch, walk
from logkeep.formats.kafka.record_view import View
from tests.support.kafka.slow_records import Slow, batch_of


def _appended(at_ms: int) -> LogSide:
    data = batch_of(0, [Slow(0, 0, b"k", b"v")], attributes=APPEND_TIME, max_time_ms=at_ms)
    view = View(0, 1)
    return LogSide(iter([BatchStretch(data, walk(data).batches)]), view, view.visible, "a log")


def test_append_times_are_compared_although_records_do_not_hold_them() -> None:
    assert PairedComparison(_appended(5), _appended(5)).run().same
    assert not PairedComparison(_appended(5), _appended(6)).run().same
