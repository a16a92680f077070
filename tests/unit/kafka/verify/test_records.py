"""The task of the `records` level: malformed records and wrong counts are reported; digests end at the cut."""

import hashlib

from logkeep.formats.compare.digest import Digest
from logkeep.kafka.verify.records import RecordUnit, SegmentRange, decode_pieces
from logkeep.model.segments import Collection, LogName, Segment
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.memory import MemoryStore
from tests.support.kafka.slow_records import Slow, batch_of, slow_digest

LOG = LogName(Collection.TOPICS, "orders", "0" * 32, 3)
RECORDS = [Slow(i, i, b"k%d" % i, b"v" * i) for i in range(5)]
GOOD = b"".join(batch_of(base, RECORDS, base_time_ms=0) for base in range(0, 50, 5))


def _decoded(stored: bytes, records: int, start: int = 0, end: int = 50) -> tuple[list[tuple[str, str]], str]:
    store = MemoryStore()
    store.put_new("object.log", stored)
    digest = hashlib.sha256(stored).hexdigest()
    segment = Segment(
        log=LOG,
        start=0,
        end=50,
        first=0,
        token="0" * 16,
        records=records,
        stored_bytes=len(stored),
        plain_bytes=len(stored),
        base_time_ms=-1,
        max_time_ms=-1,
        sha256=digest,
        plain_sha256=digest,
    )
    unit = RecordUnit(SourceRef(store, "r", "s"), [SegmentRange(segment, "object.log", start, end)])
    result = decode_pieces(unit, lambda _: None)
    return [(f.code, f.what) for f in result.findings], result.digests[0]


def test_good_records_have_the_digest_of_what_lies_inside_the_cut() -> None:
    findings, text = _decoded(GOOD, 50, 7, 33)
    assert findings == []
    expected = [(base + r.delta, r.time_delta, r) for base in range(0, 50, 5) for r in RECORDS]
    digest = Digest.parse(text)
    inside = [each for each in expected if 7 <= each[0] < 33]
    assert (digest.content_a, digest.content_b, digest.offsets) == slow_digest(inside)
    assert digest.records == 26


def test_a_malformed_record_is_told_with_partition_offset_and_byte() -> None:
    """The CRC and the hash are right: the producer wrote it so."""
    bad = batch_of(50, RECORDS, b"".join(r.encode() for r in RECORDS)[:-1], base_time_ms=0)
    (finding,), text = _decoded(GOOD + bad, 55)
    assert finding[0] == "record-malformed"
    assert finding[1].startswith("orders/3: the batch at offset 50: a record's length is impossible, at byte ")
    assert text == ""


def test_many_malformed_batches_are_counted_not_listed() -> None:
    bad = b"".join(batch_of(base, [Slow(0)], b"rubbish", count=1) for base in range(60))
    findings, _ = _decoded(bad, 60)
    assert len(findings) == 21
    assert findings[-1] == ("record-malformed", "orders/3: and 40 more batches like these")


def test_another_number_of_records_than_the_row_says_is_told() -> None:
    assert _decoded(GOOD, 51)[0] == [("count-mismatch", "orders/3: holds 50 records, its row says 51")]


def test_a_broken_batch_ends_the_object() -> None:
    broken = bytearray(GOOD)
    broken[-1] ^= 1
    ((code, what),), text = _decoded(bytes(broken), 50)
    assert (code, text) == ("batch-damaged", "")
    assert "offset 45" in what
