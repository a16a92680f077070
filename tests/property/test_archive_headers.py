"""A bit that turned over anywhere in an archived object is found before a record of its batch comes back.

The CRC-32C of a batch covers neither its offset nor its length nor its leader epoch: the index beside the object, or
the object's hash, must tell.
"""

from collections.abc import Callable, Iterator

import msgspec
import pytest

from logkeep.errors import Damaged
from logkeep.formats.kafka.batches import HEADER_BYTES, walk
from logkeep.kafka.logs import archived
from logkeep.kafka.restore.facts.log_views import archived_batches, settled_of
from logkeep.kafka.restore.facts.survey_task import RestoreSurveyUnit, SurveyLog, survey
from logkeep.kafka.restore.facts.units import RestoreIsolation, SourceLog
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.stored_segments import LOG, place, written
from tests.support.metered_store import MeteredStore

BASES = (10, 12, 40, 41, 100, 250, 251)
"""With holes between them: another offset is as possible as the right one."""
LOG_BYTES = b"".join(batch_of(base, [Slow(0, 0, b"k", b"%d" % base)], epoch=3) for base in BASES)
WAYS = ("hashed", "witnessed")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Objects are small and hashed, or large and compared with their index."""
    if request.param == "witnessed":
        _witnessed(monkeypatch)
    return str(request.param)


def _witnessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archived, "HASHED_BYTES", 0)


def _archived(codec: Codec = Codec.NONE) -> tuple[SourceRef, Segment]:
    where = place()
    (segment,) = written(where, LOG_BYTES, codec)
    return where, segment


def _changed(where: SourceRef, name: str, change: Callable[[bytearray], None]) -> None:
    data = bytearray(where.store.get(name, 1 << 20))
    change(data)
    where.store.delete(name)
    where.store.put_new(name, bytes(data))


def _flip(where: SourceRef, segment: Segment, bit: int) -> None:
    """Turn over one bit of an object; the same again puts it back."""

    def flipped(data: bytearray) -> None:
        data[bit // 8] ^= 1 << bit % 8

    _changed(where, layout.segment(where.source, segment), flipped)


def _log(segment: Segment, end: int | None = None) -> SourceLog:
    end = segment.end if end is None else end
    return SourceLog(log=LOG, start=0, end=end, segments=(segment,), transactional=True)


def _bases(where: SourceRef, segment: Segment, end: int | None = None) -> Iterator[int]:
    for stretch in archived_batches(where, _log(segment, end)):
        yield from stretch.batches.base_offsets.tolist()


def _read(where: SourceRef, segment: Segment, end: int | None = None) -> list[int]:
    return list(_bases(where, segment, end))


def _header_bits(number: int) -> Iterator[int]:
    at = int(walk(LOG_BYTES).batches.positions[number])
    return iter(range(8 * at, 8 * (at + HEADER_BYTES)))


def _one_further(number: int) -> int:
    """The last bit of a base offset."""
    return list(_header_bits(number))[8 * 7]


@pytest.mark.parametrize("number", [0, len(BASES) // 2, len(BASES) - 1])
def test_any_bit_of_a_header(way: str, number: int) -> None:
    where, segment = _archived()
    name = layout.segment(where.source, segment)
    assert _read(where, segment) == list(BASES)
    for bit in _header_bits(number):
        _flip(where, segment, bit)
        came = list[int]()
        with pytest.raises(Damaged) as told:
            came.extend(_bases(where, segment))
        assert (told.value.subject, came) == (name, list(BASES[: len(came)])), bit
        assert len(came) <= number, bit
        with pytest.raises(Damaged):
            settled_of(where, _log(segment), RestoreIsolation.COMMITTED)
        _flip(where, segment, bit)
    assert _read(where, segment) == list(BASES)


def test_any_bit_of_a_packed_log(way: str) -> None:
    """What can be unpacked to the very same bytes all the same does no harm."""
    where, segment = _archived(Codec.ZSTD)
    assert segment.codec is Codec.ZSTD
    found = 0
    for bit in range(8 * segment.stored_bytes):
        _flip(where, segment, bit)
        try:
            assert _read(where, segment) == list(BASES), bit
        except Damaged:
            found += 1
        _flip(where, segment, bit)
    assert found > 4 * segment.stored_bytes


@pytest.mark.parametrize("number", range(len(BASES)))
def test_a_row_that_answers_for_a_part_of_its_object(way: str, number: int) -> None:
    """What moved out of the part, or into it, is found as well."""
    where, segment = _archived()
    part = msgspec.structs.replace(segment, start=12, end=200)
    assert _read(where, part) == [12, 40, 41, 100]
    for bit in list(_header_bits(number))[: 8 * 8]:
        _flip(where, segment, bit)
        with pytest.raises(Damaged):
            _read(where, part)
        _flip(where, segment, bit)


def test_an_earlier_end(way: str) -> None:
    """Nothing of a batch that moved comes, however early the log is to end."""
    where, segment = _archived()
    _flip(where, segment, _one_further(1))  # 12 becomes 13
    with pytest.raises(Damaged):
        _read(where, segment, end=13)


def _lose(where: SourceRef, name: str) -> None:
    where.store.delete(name)


def _damage(where: SourceRef, name: str) -> None:
    _changed(where, name, lambda data: data.__setitem__(-1, data[-1] ^ 1))


def _another(where: SourceRef, name: str) -> None:
    """An index that is whole, and of as many bytes and records, only not of this object."""
    other = place()
    moved = b"".join(batch_of(base + 1, [Slow(0, 0, b"k", b"%d" % base)], epoch=3) for base in BASES)
    (stranger,) = written(other, moved, Codec.NONE)
    where.store.delete(name)
    where.store.put_new(name, other.store.get(layout.index_of("prod", LOG, stranger.first, stranger.token), 1 << 20))


@pytest.mark.parametrize("spoil", [_lose, _damage, _another])
def test_an_index_that_cannot_be_believed(
    monkeypatch: pytest.MonkeyPatch, spoil: Callable[[SourceRef, str], None]
) -> None:
    """Then the hash decides: an object that is as it was is read, one with another bit is not."""
    _witnessed(monkeypatch)
    where, segment = _archived()
    spoil(where, layout.index_of(where.source, LOG, segment.first, segment.token))
    assert _read(where, segment) == list(BASES)
    for bit in _header_bits(len(BASES) - 1):
        _flip(where, segment, bit)
        with pytest.raises(Damaged):
            _read(where, segment)
        _flip(where, segment, bit)


def test_a_survey_without_an_index_does_not_believe_a_moved_batch() -> None:
    where, segment = _archived()
    where.store.delete(layout.index_of(where.source, LOG, segment.first, segment.token))
    log = SurveyLog(log=LOG, start=0, end=segment.end, segments=(segment,))
    assert survey(RestoreSurveyUnit(place=where, logs=(log,)), lambda _: None).logs[0].damage == ""
    _flip(where, segment, _one_further(4))
    assert survey(RestoreSurveyUnit(place=where, logs=(log,)), lambda _: None).logs[0].damage


def test_a_large_object_is_read_once_and_never_hashed() -> None:
    where = place()
    data = b"".join(batch_of(base, [Slow(0, 0, b"k", bytes(50_000))]) for base in range(100))
    (segment,) = written(where, data, Codec.NONE)
    assert segment.plain_bytes > archived.HASHED_BYTES
    meter = MeteredStore(where.store)
    wrong = msgspec.structs.replace(segment, sha256="0" * 64)
    assert _read(SourceRef(meter, where.repository, where.source), wrong) == list(range(100))
    assert meter.meter.usage().bytes_down < 1.1 * len(data)
