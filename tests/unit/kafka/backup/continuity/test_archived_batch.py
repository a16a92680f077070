"""Single batches are read from the archive: what an older release did not record of a log's end."""

import msgspec
import pytest

from logkeep.kafka.backup.continuity.archived_batch import by_log, header_of, read_batch
from logkeep.kafka.backup.continuity.log_continuity import LogContinuity
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.model.segments import Codec, Segment
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.stored_segments import LOG, place, written

BATCHES = [dense(at, 10, epoch=2) for at in range(0, 200, 10)]


def stored(where: SourceRef, codec: Codec) -> list[Segment]:
    return written(where, b"".join(b.encode() for b in BATCHES), codec, segment_bytes=600)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("indexed", [True, False])
def test_the_last_batch_that_begins_before_an_offset(codec: Codec, indexed: bool) -> None:
    where = place()
    rows = stored(where, codec)
    assert len(rows) > 3
    if not indexed:
        for row in rows:
            where.store.delete(layout.index_of(where.source, row.log, row.first, row.token))
    for offset in (0, 9, 10, 57, 123, 199):
        assert read_batch(where, rows, offset) == BATCHES[offset // 10].encode()
    assert read_batch(where, rows[1:], rows[1].first - 1) is None


def test_a_row_that_claims_less_than_its_object_holds() -> None:
    """Merged objects reach beyond the cut of an earlier backup."""
    where = place()
    (whole,) = written(where, b"".join(b.encode() for b in BATCHES), Codec.NONE)
    shorter = msgspec.structs.replace(whole, end=120)
    assert read_batch(where, [shorter], 500) == BATCHES[11].encode()


def test_lost_and_damaged_bytes_are_no_answer() -> None:
    where = place()
    rows = stored(where, Codec.NONE)
    name = layout.segment(where.source, rows[-1])
    data = bytearray(where.store.get(name, 1 << 20))
    data[-1] ^= 1
    where.store.delete(name)
    assert read_batch(where, rows, 199) is None
    where.store.put_new(name, bytes(data))
    assert read_batch(where, rows, 199) is None


def test_receipts_of_older_releases_get_their_last_batch() -> None:
    where = place()
    rows = by_log(stored(where, Codec.NONE))[LOG]
    old = RangeResult(log=LOG, lo=0, hi=200, outcome=CopyOutcome.COPIED, reached=200, epochs=(EpochRun(2, 0, 200),))
    result = CopyResult(unit="u", ranges=(old,), segments=tuple(rows))
    with Cluster(ClientSettings(endpoints("127.0.0.1:1"))) as cluster:
        (read,) = LogContinuity(cluster, where).copied([result])
        (empty,) = LogContinuity(cluster, where).copied([CopyResult(unit="u", ranges=(), segments=())])
    assert read.ranges[0].last_batch == header_of(BATCHES[-1].encode())
    assert empty.ranges == ()
