"""Where segment files end: whole batches, no file too large, no offset that an index cannot express."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.formats.kafka.batches import walk
from logkeep.kafka.offline_restore.segment_rolling import OpenSegmentFile, borders, file_name
from tests.property.untimed import untimed
from tests.support.kafka.handmade_batches import Batch

_FAR = st.sampled_from([0, 0, 0, 5, 2**30, 2**31 - 2, 2**31, 2**40])
_BATCHES = st.lists(st.tuples(_FAR, st.integers(0, 3), st.integers(0, 60)), min_size=1, max_size=20)


@untimed
@given(_BATCHES, st.integers(0, 2**33), st.integers(1, 400), st.integers(0, 400))
def test_every_file_is_one_that_a_broker_can_index(
    shapes: list[tuple[int, int, int]], start: int, limit: int, filled: int
) -> None:
    made, offset = [], start
    for gap, delta, size in shapes:
        made.append(Batch(offset + gap, delta, 0, payload=bytes(size)))
        offset += gap + delta + 1
    data = b"".join(b.encode() for b in made)
    batches = walk(data).batches
    assert len(batches) == len(made)
    cuts = borders(batches, OpenSegmentFile(start, filled), limit)
    assert cuts == sorted(set(cuts))
    assert all(0 <= c < len(made) for c in cuts)
    for number, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(made)], strict=True)):
        inside = made[first:last]
        base, before = (start, filled) if not number else (inside[0].base, 0)
        size = before + sum(len(b.encode()) for b in inside)
        assert size <= limit or (before == 0 and len(inside) == 1) or not inside
        assert all(b.last - base < 2**31 for b in inside)


def test_names_have_twenty_digits() -> None:
    assert file_name(300) == "00000000000000000300.log"
