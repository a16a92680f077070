"""Merged batches against a slow merge: the same groups, the same records, however the archive arrives."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.record_view import View
from logkeep.formats.kafka.restore import merge_batches
from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule, merged
from logkeep.formats.kafka.restore.send_batches import OffsetHole, Outgoing, outgoing
from tests.property.outgoing_logs import logs, offsets, sent_batches, stretches, views
from tests.property.untimed import many, untimed
from tests.support.kafka.slow_batches import Sent, Source, unpacked
from tests.support.kafka.slow_records import varint

HEADER_BYTES = 61
_rules = st.builds(
    lambda small, most: BatchMergeRule(small_bytes=small, most_bytes=most),
    st.sampled_from((1, 100, 150, 300, 1 << 20)),
    st.sampled_from((80, 150, 400, 900, 1 << 16)),
)


def _number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number, at, shift = number | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at


def _body_sizes(batch: Sent) -> list[int]:
    plain, at, found = unpacked(batch.attributes & 7, batch.section), 0, list[int]()
    for _ in batch.records:
        size, begin = _number(plain, at)
        body = _number(plain, _number(plain, begin + 1)[1])[1]
        at = begin + size
        found.append(at - body)
    return found


@dataclass(frozen=True)
class Group:
    batches: tuple[Sent, ...]

    @property
    def plain_bytes(self) -> int:
        records = [
            (time, size) for b in self.batches for (time, *_), size in zip(b.records, _body_sizes(b), strict=True)
        ]
        total = 0
        for row, (time, body) in enumerate(records):
            delta = (time - records[0][0] + 2**63) % 2**64 - 2**63
            inner = 1 + len(varint(delta)) + len(varint(row)) + body
            total += len(varint(inner)) + inner
        return total


def _slow_groups(parts: list[Outgoing | OffsetHole], rule: BatchMergeRule) -> list[Group]:
    """One batch after the other, with everything written out."""
    found: list[Group] = []
    last_is_hole = True
    for part in parts:
        for batch in sent_batches([part]):
            joins = bool(found) and not last_is_hole and _may_join(found[-1], batch, rule)
            found = [*found[:-1], Group((*found[-1].batches, batch))] if joins else [*found, Group((batch,))]
            last_is_hole = False
        last_is_hole = last_is_hole or isinstance(part, OffsetHole)
    return found


def _may_join(group: Group, batch: Sent, rule: BatchMergeRule) -> bool:
    last = group.batches[-1]
    small = all(HEADER_BYTES + len(b.section) < rule.small_bytes for b in (last, batch))
    room = rule.most_bytes - HEADER_BYTES
    limit = room if not batch.attributes & 7 else (room - 64) * 6 // 7
    return small and last.attributes & 7 == batch.attributes & 7 and Group((*group.batches, batch)).plain_bytes <= limit


@many
@given(logs(), views(), st.integers(1, 8), _rules)
def test_the_groups_are_those_of_the_slow_merge(
    log: list[Source], view: View, together: int, rule: BatchMergeRule
) -> None:
    expected = _slow_groups(list(outgoing(stretches(log, together), view)), rule)
    parts = list(merged(outgoing(stretches(log, together), view), rule))
    sent = sent_batches(parts)
    assert [len(b.records) for b in sent] == [sum(len(b.records) for b in g.batches) for g in expected]
    for made, group in zip(sent, expected, strict=True):
        assert made.records == tuple(r for b in group.batches for r in b.records)
        assert made.attributes == group.batches[0].attributes
        if len(group.batches) == 1:
            assert made.section == group.batches[0].section, "a batch without a neighbour is sent as it is"
        else:
            assert HEADER_BYTES + len(made.section) <= rule.most_bytes
            assert made.max_time_ms == max(time for time, *_ in made.records)
    first = [each for part in parts if isinstance(part, Outgoing) for each in part.first_offsets.tolist()]
    counts = [len(b.records) for b in sent]
    assert first == [offsets(parts)[sum(counts[:i])] for i in range(len(counts))]


@untimed
@given(logs(), views(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 400), _rules)
def test_pieces_of_the_archive_decide_nothing(
    log: list[Source], view: View, together: int, otherwise: int, chunk_bytes: int, rule: BatchMergeRule
) -> None:
    plain = list(outgoing(stretches(log, together), view))
    one = list(merged(outgoing(stretches(log, together), view), rule))
    usual, merge_batches.CHUNK_BYTES = merge_batches.CHUNK_BYTES, chunk_bytes
    try:
        two = list(merged(outgoing(stretches(log, otherwise), view, chunk_bytes), rule))
    finally:
        merge_batches.CHUNK_BYTES = usual
    assert sent_batches(one) == sent_batches(two)
    assert offsets(plain) == offsets(one) == offsets(two)
    holes = [[part for part in parts if isinstance(part, OffsetHole)] for parts in (plain, one, two)]
    assert holes[0] == holes[1] == holes[2]
    after = [
        [len(offsets(p[:i])) for i, part in enumerate(p) if isinstance(part, OffsetHole)] for p in (plain, one, two)
    ]
    assert after[0] == after[1] == after[2]
