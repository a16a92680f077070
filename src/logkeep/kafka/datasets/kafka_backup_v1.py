"""Datasets in the format kafka-backup-v1. In a directory files grow; in a bucket each run begins a new segment.

The order is always: records, then the index of their segment, then the index of the partition. A partition index exists
before the first segment.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from logkeep.formats.datasets.kafka_backup_v1.files import (
    MAGIC,
    NAME,
    EncodedRecords,
    ListedSegment,
    encode,
    encode_groups,
    group_file,
    segment_name,
)
from logkeep.kafka.datasets.formats import DatasetEnd, DatasetOptions, WrittenPart
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.v1_end import V1End, find_v1_end, last_record
from logkeep.kafka.datasets.v1_segments import GrowingPartition, V1Partition, V1Segment, WholePartition
from logkeep.kafka.record.dataset_document import DatasetLog

if TYPE_CHECKING:
    import pyarrow as pa

FLUSH_BYTES = 64 << 20
"""After so many bytes, records become part of the dataset. After a kill, at most so many are written again."""
_INDEX = re.compile(r"([^/]+)/index_partition_([0-9]{3,10})")


class KafkaBackupV1:
    """The `DatasetFormat`."""

    name = NAME

    def schema(self, options: DatasetOptions) -> str:
        return ""

    def holds_all(self, options: DatasetOptions) -> bool:
        return True

    def root(self, topic: str) -> str:
        return f"{topic}/"

    def logs(self, target: DatasetTarget) -> frozenset[DatasetLog]:
        found = (_INDEX.fullmatch(info.name) for info in target.names(""))
        return frozenset(DatasetLog(each[1], int(each[2])) for each in found if each)

    def find_end(self, target: DatasetTarget, log: DatasetLog) -> DatasetEnd:
        end = find_v1_end(target, log)
        last = end.final.last if end.final else None
        return DatasetEnd(end.listed_bytes > 0, last, end.start, unfinished=end.unfinished)

    def writer(self, target: DatasetTarget, log: DatasetLog, options: DatasetOptions) -> "V1Writer":
        end = find_v1_end(target, log)
        for name in end.leftovers:
            target.remove(name)
        kind = WholePartition if target.directory is None else GrowingPartition
        return V1Writer(log, kind(target, log, end), end, options.segment_bytes)

    def has_last(self, target: DatasetTarget, log: DatasetLog, record: "pa.RecordBatch") -> bool:
        final = find_v1_end(target, log).final
        return final is not None and last_record(target, log, final) == encode(record).data.tobytes()

    def put_groups(self, target: DatasetTarget, log: DatasetLog, positions: Mapping[str, int]) -> None:
        target.put(f"{log.topic}/{group_file(log.partition)}", encode_groups(positions))


class V1Writer:
    """Writes one partition. The record with which a file exceeds `segment_bytes` is its last."""

    def __init__(self, log: DatasetLog, partition: V1Partition, end: V1End, segment_bytes: int) -> None:
        self._log, self._partition, self._most = log, partition, segment_bytes
        self._segment = partition.reopened(end.final, segment_bytes) if end.final is not None else None
        self._waiting_bytes = 0
        self._records = self._bytes = self._files = 0
        self._first = self._last = -1

    def write(self, records: "pa.RecordBatch") -> None:
        encoded = encode(records)
        starts, at = encoded.starts, 0
        while at < len(starts):
            segment = self._segment_for(int(encoded.offsets[at]))
            fits = np.searchsorted(starts, self._most - segment.size + starts[at], side="right")
            after = max(at + 1, int(fits))
            self._append(segment, encoded, at, after)
            at = after

    def finish(self) -> WrittenPart:
        if self._segment is not None:
            self._segment.close()
        self._partition.close()
        return WrittenPart(self._records, self._bytes, self._files, self._first, self._last)

    def abort(self) -> None:
        if self._segment is not None:
            self._segment.abort()
        self._partition.close()

    def _segment_for(self, offset: int) -> V1Segment:
        """The segment that takes a record of this offset."""
        if self._segment is not None and self._segment.size > self._most:
            self._segment.close()
            self._segment = None
        if self._segment is None:
            name = segment_name(self._log.partition, offset)
            self._segment = self._partition.begin(ListedSegment(name, offset))
            self._segment.append(MAGIC, b"")
            self._files += 1
            self._waiting_bytes = 0
        return self._segment

    def _append(self, segment: V1Segment, encoded: EncodedRecords, first: int, after: int) -> None:
        data = encoded.data[int(encoded.starts[first]) : int(encoded.ends[after - 1])]
        segment.append(data.data, encoded.index(first, after, segment.size))
        self._first = int(encoded.offsets[first]) if self._first < 0 else self._first
        self._last = int(encoded.offsets[after - 1])
        self._records, self._bytes = self._records + after - first, self._bytes + len(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= FLUSH_BYTES:
            segment.flush()
            self._waiting_bytes = 0
