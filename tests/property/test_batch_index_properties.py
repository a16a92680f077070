"""Whatever a log's headers say: its index survives storage, lookups agree with a slow search, noise is refused."""

from hypothesis import given
from hypothesis import strategies as st

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.kafka.batch_index import decode, encode, index_of, join
from logkeep.formats.kafka.batches import WalkEnd, walk
from tests.property.untimed import many
from tests.support.kafka.handmade_batches import Batch

times = st.integers(-1, 2**62)


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    made: list[Batch] = []
    base = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(0, 12))):
        delta = draw(st.integers(0, 20))
        count = draw(st.integers(0, delta + 1))
        made.append(
            Batch(
                base,
                delta,
                count,
                epoch=draw(st.integers(-1, 2**31 - 1)),
                attributes=draw(st.integers(0, 0x7F)),
                base_time_ms=draw(times),
                max_time_ms=draw(times),
                producer=draw(st.integers(-1, 2**63 - 1)),
                payload=bytes(7 * count),
            )
        )
        base += delta + 1 + draw(st.integers(0, 5))
    return made


@many
@given(batches(), st.integers(0, 12))
def test_a_rebuilt_index_equals_the_stored_one(made: list[Batch], cut: int) -> None:
    found = walk(b"".join(b.encode() for b in made)).batches
    assert len(found) == len(made)
    first, second = found[:cut], found[cut:]
    stored = decode(encode(join([index_of(first), index_of(second, first.end)])))
    assert (stored.rows == index_of(found).rows).all()
    assert stored.rows["producer_id"].tolist() == [b.producer for b in made]
    assert stored.rows["leader_epoch"].tolist() == [b.epoch for b in made]


@many
@given(batches(), st.integers(0, 2**41))
def test_lookups_agree_with_a_slow_search(made: list[Batch], offset: int) -> None:
    index = index_of(walk(b"".join(b.encode() for b in made)).batches)
    offset = offset if not made else made[0].base + offset % 300
    assert index.at_offset(offset) == next((i for i, b in enumerate(made) if b.last >= offset), len(made))


@many
@given(st.binary(max_size=300), batches())
def test_no_bytes_do_worse_than_an_error(noise: bytes, made: list[Batch]) -> None:
    for data in (noise, encode(index_of(walk(b"".join(b.encode() for b in made)).batches))[:16] + noise):
        try:
            decode(data)
        except (Damaged, FormatTooNew):
            continue
        assert data[:6] == b"LKBIDX"


@many
@given(st.binary(max_size=400), batches(), st.integers(0, 600))
def test_walking_noise_never_raises_and_never_leaves_the_buffer(noise: bytes, made: list[Batch], at: int) -> None:
    data = bytearray(b"".join(b.encode() for b in made))
    data[at : at + len(noise)] = noise
    walked = walk(data)
    assert walked.batches.end == walked.stopped_at or not len(walked.batches)
    assert walked.stopped_at <= len(data)
    assert walked.stop is not WalkEnd.END or walked.stopped_at == len(data)
