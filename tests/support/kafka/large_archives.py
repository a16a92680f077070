"""A large archived topic, made quickly: one partition of batches of sixteen kilobytes, half of it incompressible."""

import os
import struct
from collections.abc import Iterator

import google_crc32c

from logkeep.formats.kafka.batches import walk
from logkeep.kafka.record.documents import ROLE, ClusterRecord, PartitionRecord, TopicRecord
from logkeep.model.segments import Codec, Collection, LogName
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.attachments import put_attachment
from logkeep.repository.backups.backup import FinishedRun, begin
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.backups.source import ensure_source
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from logkeep.repository.segments.writer import SegmentLimits, SegmentWriter
from tests.support.kafka.slow_records import Slow, batch_of

TOPIC, TOPIC_ID = "large", "c" * 32
RECORDS = 16
"""In a batch."""
_CRC_AT, _CRC_FROM = 17, 21


def back_up_large(place: SourceRef, size_bytes: int, codec: Codec, segment_bytes: int = 256 << 20) -> int:
    """Returns the end offset."""
    log, end = LogName(Collection.TOPICS, TOPIC, TOPIC_ID, 0), 0
    with writing(place, "backup", utc_now, random_token) as session:
        ongoing = begin(session, ensure_source(place, "kafka", {"cluster_id": "by-hand"}, utc_now()))
        writer = SegmentWriter(place, log, 0, SegmentLimits(segment_bytes), 0, random_token, codec)
        for data in _replies(size_bytes):
            batches = walk(data).batches
            writer.write(memoryview(data), batches)
            end = int(batches.last_offsets[-1]) + 1
        writer.finish(end)
        record = ClusterRecord(
            version=3, repository=place.repository, source=place.source, id=ongoing.id, cluster_id="by-hand",
            topics=(TopicRecord(TOPIC, TOPIC_ID, False, 1, 1, {}),),
            logs=(PartitionRecord(TOPIC, 0, TOPIC_ID, 0, end, end, 0),),
            open_transactions=(), groups=(), acls=None, quotas=(),
        )  # fmt: skip
        attached = put_attachment(place, ongoing.id, ROLE, record, random_token())
        ongoing.complete(FinishedRun(cut=[LogCut(log, 0, end)], new=writer.segments, attachments=[attached]))
    return end


def _replies(size_bytes: int) -> Iterator[bytes]:
    """As a broker would answer: some megabytes of batches, each with values of its own."""
    records = [Slow(n, n, b"key-%02d" % n, os.urandom(256).hex().encode() * 2) for n in range(RECORDS)]
    pattern = bytearray(batch_of(0, records, base_time_ms=0, max_time_ms=RECORDS))
    places = [pattern.index(record.value or b"") for record in records]
    base, done = 0, 0
    while done < size_bytes:
        reply = []
        for _ in range(256):
            pattern[:8] = struct.pack(">q", base)
            noise = os.urandom(256 * RECORDS).hex().encode()
            for number, at in enumerate(places):
                pattern[at : at + 512] = noise[512 * number : 512 * (number + 1)]
            pattern[_CRC_AT:_CRC_FROM] = struct.pack(">I", google_crc32c.value(bytes(pattern[_CRC_FROM:])))
            reply.append(bytes(pattern))
            base += RECORDS
        data = b"".join(reply)
        done += len(data)
        yield data
