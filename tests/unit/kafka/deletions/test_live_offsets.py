"""Which offsets are live: batches of a log with holes, asked in pieces, compared with a plain set."""

import random
from collections.abc import Iterator

import numpy as np

from logkeep.formats.kafka.batches import CONTROL, BatchStretch, walk
from logkeep.kafka.deletions.live_offsets import LiveOffsets
from logkeep.kafka.logs.live import Lost
from tests.support.kafka.slow_records import Slow, batch_of


def _stretch(*batches: bytes) -> BatchStretch:
    data = b"".join(batches)
    return BatchStretch(data, walk(data).batches)


def _asked(live: LiveOffsets, pieces: list[list[int]]) -> set[int]:
    return {
        offset
        for piece in pieces
        for offset, there in zip(piece, live.among(np.array(piece, np.int64)).tolist(), strict=True)
        if there
    }


def test_offsets_are_live_as_a_set_says() -> None:
    """Whole batches, thinned ones, control batches and holes between them."""
    choose = random.Random(11)
    for _ in range(60):
        stretches, live, base = list[BatchStretch](), set[int](), choose.randrange(5)
        for _ in range(choose.randrange(4)):
            batches = list[bytes]()
            for _ in range(choose.randrange(1, 4)):
                size, control = choose.randrange(1, 9), choose.random() < 0.2
                deltas = range(size) if choose.random() < 0.5 else sorted(choose.sample(range(size), (size + 1) // 2))
                records, kind = [Slow(d, 0, b"k", b"v") for d in deltas], CONTROL if control else 0
                batches.append(batch_of(base, records, delta=size - 1, attributes=kind))
                live |= set() if control else {base + delta for delta in deltas}
                base += size + choose.choice((0, 0, 3))
            stretches.append(_stretch(*batches))
        offsets = sorted(choose.sample(range(base + 4), choose.randrange(base + 5)))
        cuts = sorted(choose.sample(range(len(offsets) + 1), min(2, len(offsets) + 1)))
        pieces = [offsets[a:b] for a, b in zip([0, *cuts], [*cuts, len(offsets)], strict=True)]
        assert _asked(LiveOffsets(iter(stretches), lambda _: None), pieces) == live & set(offsets)


def test_a_whole_batch_is_not_unpacked_and_a_thinned_one_is() -> None:
    whole = batch_of(0, [], payload=b"nobody can read this", count=2, delta=1)
    thinned = batch_of(2, [], payload=b"unreadable", count=1, delta=1)
    live = LiveOffsets(iter([_stretch(whole, thinned)]), lambda _: None)
    assert live.among(np.arange(4)).tolist() == [True, True, False, False]
    assert "cannot be read" in live.problem


def test_a_log_that_is_lost_has_a_problem() -> None:
    def source() -> Iterator[BatchStretch | Lost]:
        yield _stretch(batch_of(0, [Slow(0, 0, b"a", b"v")]))
        yield Lost("the topic was deleted")

    live = LiveOffsets(source(), lambda _: None)
    assert live.among(np.arange(3)).tolist() == [True, False, False]
    assert live.problem == "the topic was deleted"
