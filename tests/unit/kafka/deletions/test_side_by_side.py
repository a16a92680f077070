"""Two logs compared in passing, by what another reader asks for, as by one comparison of both as a whole."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import astuple

import numpy as np

from logkeep.formats.compare.log_compare import LogComparison
from logkeep.formats.kafka.batches import CONTROL, BatchStretch, walk
from logkeep.formats.kafka.records import RecordColumns, decode
from logkeep.kafka.deletions.live_offsets import LiveOffsets
from logkeep.kafka.deletions.side_by_side import SideBySide
from logkeep.kafka.logs.live import Lost
from logkeep.model.ranges import Range
from tests.support.kafka.slow_records import Slow, batch_of


def _stretch(batches: Sequence[bytes]) -> BatchStretch:
    data = b"".join(batches)
    return BatchStretch(data, walk(data).batches)


def _batch(choose: random.Random, base: int, size: int, text: bytes, *, control: bool) -> bytes:
    kept = range(size) if choose.random() < 0.6 else sorted(choose.sample(range(size), choose.randrange(1, size + 1)))
    records = [Slow(delta, 0, b"k", text) for delta in kept]
    return batch_of(base, records, delta=size - 1, attributes=CONTROL if control else 0)


class _Logs:
    """An archive, the live log, and the spans of the archive."""

    def __init__(self, choose: random.Random) -> None:
        self.archived, self.live = list[bytes](), list[bytes]()
        borders, base = [0], 0
        for _ in range(choose.randrange(12)):
            size, control = choose.randrange(1, 6), choose.random() < 0.25
            one = _batch(choose, base, size, b"v", control=control)
            self.archived += [one] if choose.random() < 0.85 else []
            found = choose.random()
            if found < 0.5:
                self.live.append(one)
            elif found < 0.9:
                self.live.append(_batch(choose, base, size, choose.choice((b"v", b"v", b"w")), control=control))
            base += size + choose.choice((0, 0, 2))
            borders += [base] if choose.random() < 0.5 else []
        pairs = zip(borders, [*borders[1:], base], strict=True)
        self.spans = [Range(a, b) for a, b in pairs if a < b and choose.random() < 0.8]
        ends = [self.spans[-1].end] if self.spans else [0]
        self.archived = [b for b in self.archived if walk(b).batches.base_offsets[0] < ends[0]]


def _parts(choose: random.Random, batches: list[bytes]) -> Iterator[BatchStretch]:
    """In stretches, of which each is overwritten after the one after the next was asked for."""
    given = list[bytearray]()
    while batches:
        many = choose.randrange(1, 4)
        data = bytearray(b"".join(batches[:many]))
        batches = batches[many:]
        given.append(data)
        if len(given) > 1:
            given[-2][:] = b"\xff" * len(given[-2])
        yield BatchStretch(memoryview(data), walk(bytes(data)).batches)


def _read_through(choose: random.Random, logs: _Logs, beside: SideBySide) -> None:
    """As the search for deleted keys reads: offsets of archived records, and live ones as far as they need."""
    live = LiveOffsets(beside.live(_parts(choose, logs.live)), lambda _: None)
    for part in beside.archived(_parts(choose, logs.archived), live.read_to):
        for records in decode(part.buffer, part.batches):
            assert isinstance(records, RecordColumns)
            plain = records.offsets[~records.control]
            if len(plain) and choose.random() < 0.8:
                live.among(plain)


def test_everything_is_compared_as_at_once() -> None:
    seen = set[str]()
    for seed in range(400):
        choose = random.Random(seed)
        logs = _Logs(choose)
        if not logs.spans:
            continue
        beside = SideBySide(logs.spans)
        _read_through(choose, logs, beside)
        whole = [LogComparison() for _ in logs.spans]
        for span, each in zip(logs.spans, whole, strict=True):
            each.compare(_stretch(logs.live), _stretch(logs.archived), span.start, span.end)
        assert [astuple(each) for each in beside.compared] == [astuple(each) for each in whole], seed
        seen |= {
            name for each in whole for name in ("identical", "equal", "missing", "differing") if getattr(each, name)
        }
    assert seen == {"identical", "equal", "missing", "differing"}


def test_what_was_read_before_the_live_log_was_lost_is_compared() -> None:
    one, two = _stretch([batch_of(0, [Slow(0, 0, b"k", b"v")])]), _stretch([batch_of(1, [Slow(0, 0, b"k", b"w")])])
    beside = SideBySide([Range(0, 2)])
    live = LiveOffsets(beside.live(iter([one, Lost("gone")])), lambda _: None)
    for part in beside.archived(iter([one, two]), live.read_to):
        live.among(np.array([part.last], np.int64))
    assert (beside.compared[0].identical, beside.compared[0].missing, live.problem) == (1, 0, "gone")
