"""The committed view of generated logs, against what the generator itself decided about every record."""

import struct
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batches import CONTROL, TRANSACTIONAL, Batches, walk
from logkeep.formats.kafka.transactions import (
    ABORT,
    COMMIT,
    AbortedRange,
    SettledTransactions,
    Settling,
    UnendedTransaction,
    committed_batches,
)
from tests.property.untimed import many, untimed
from tests.support.kafka.slow_records import Slow, batch_of


@dataclass(frozen=True)
class Step:
    kind: str
    producer: int
    records: int


_steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(("plain", "data", "data", "commit", "abort", "other")),
        st.integers(0, 3),
        st.integers(1, 4),
    ),
    max_size=25,
)


def marker(base: int, producer: int, kind: int) -> bytes:
    record = Slow(0, 0, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 7))
    return batch_of(base, [record], attributes=TRANSACTIONAL | CONTROL, producer=producer)


def _log(steps: list[Step]) -> tuple[bytes, list[int], list[int], list[AbortedRange], list[UnendedTransaction]]:
    """The bytes; base offsets of all batches and of those that count; what was aborted and what is open."""
    data, base, every, counts = b"", 0, list[int](), list[int]()
    waiting: dict[int, list[int]] = {}
    aborted = list[AbortedRange]()
    for step in steps:
        every.append(base)
        records = [Slow(i, 0, b"k", b"v") for i in range(step.records)]
        if step.kind == "plain":
            data += batch_of(base, records, producer=step.producer)
            counts.append(base)
        elif step.kind == "data":
            data += batch_of(base, records, attributes=TRANSACTIONAL, producer=step.producer)
            waiting.setdefault(step.producer, []).append(base)
        else:
            data += marker(base, step.producer, {"abort": ABORT, "commit": COMMIT, "other": 5}[step.kind])
            if step.kind == "commit":
                counts += waiting.pop(step.producer, [])
            elif step.kind == "abort" and step.producer in waiting:
                aborted.append(AbortedRange(waiting.pop(step.producer)[0], base, step.producer))
        base += step.records if step.kind in ("plain", "data") else 1
    return data, every, sorted(counts), aborted, sorted(UnendedTransaction(w[0], p) for p, w in waiting.items())


@many
@given(_steps, st.integers(1, 6))
def test_what_counts_is_what_was_committed(steps: list[Step], together: int) -> None:
    data, every, counts, aborted, still_open = _log(steps)
    batches = walk(data).batches
    settling = Settling()
    for at in range(0, len(batches), together):
        settling.take(data, batches[at : at + together])
    settled = settling.settled()
    assert settled == SettledTransactions(tuple(aborted), tuple(still_open))
    assert [b for b, seen in zip(every, settled.visible(batches).tolist(), strict=True) if seen] == counts
    assert settling.problems == []


@many
@given(_steps, st.integers(0, 25), st.integers(1, 6), st.sets(st.integers(0, 24), max_size=6))
def test_a_brokers_list_of_aborted_transactions_says_the_same(
    steps: list[Step], start: int, together: int, compacted: set[int]
) -> None:
    """Each reply has the transactions that overlap it, from wherever it begins; compaction may have removed batches of
    aborted ones, also their first."""
    ended = [*steps, *(Step("commit", producer, 1) for producer in range(4))]
    data, every, counts, aborted, _ = _log(ended)
    batches = walk(data).batches
    markers = {each.last_offset for each in aborted}
    kept = [
        at
        for at, base in enumerate(every)
        if at >= start and not (at in compacted and base not in counts and base not in markers)
    ]
    for first in range(0, len(kept), together):
        rows = np.array(kept[first : first + together])
        part = Batches(batches.headers[rows], batches.positions[rows])
        low, high = int(part.base_offsets[0]), int(part.last_offsets[-1])
        listed = [(a.first_offset, a.producer_id) for a in aborted if a.last_offset >= low and a.first_offset <= high]
        seen = part.base_offsets[committed_batches(data, part, listed)].tolist()
        assert seen == [base for base in part.base_offsets.tolist() if base in counts]


@untimed
@given(_steps, st.integers(0, 25))
def test_what_is_decided_behind_the_cut_counts_as_aborted(steps: list[Step], cut: int) -> None:
    data, *_ = _log(steps)
    _, _, counts, _, _ = _log(steps[:cut])
    before = walk(data).batches[:cut]
    settling = Settling()
    settling.take(data, before)
    seen = settling.settled().visible(before)
    assert before.base_offsets[seen].tolist() == counts


def test_a_marker_that_cannot_be_read_is_told_and_settles_nothing() -> None:
    data = batch_of(0, [Slow(0)], attributes=TRANSACTIONAL, producer=1)
    data += batch_of(1, [Slow(0)], b"rubbish", attributes=TRANSACTIONAL | CONTROL, producer=1)
    settling = Settling()
    settling.take(data, walk(data).batches)
    assert [p.base_offset for p in settling.problems] == [1]
    assert settling.settled().open == (UnendedTransaction(0, 1),)


def test_nothing_is_settled_by_nothing() -> None:
    assert Settling().settled().visible(walk(b"").batches).tolist() == []
    assert len(Batches(walk(b"").batches.headers, walk(b"").batches.positions)) == 0
