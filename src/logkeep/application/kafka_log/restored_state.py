"""The snapshot on which a restored log builds, as the records before that log: written by a restore, read by leaders.

A snapshot is stored byte for byte in pieces, each with the header `lk-s`, its number. A leader that gets a restored
partition for the first time takes it into its directory and replays the log after it, as it does with a log in files
that was compacted up to a snapshot.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from confluent_kafka import Message

from logkeep.application.kafka_log.committed_records import CommittedReader
from logkeep.application.kafka_log.current_application import RestoredStart
from logkeep.application.kafka_log.log_topics import ConnectionConfig
from logkeep.checkpoint.snapshots import SnapshotStore
from logkeep.errors import Damaged

CHUNK: Final = "lk-s"
CHUNK_BYTES: Final = 1 << 20


def chunks_of(snapshot: Path) -> Iterator[tuple[tuple[tuple[str, bytes], ...], bytes]]:
    """Headers and value of each record."""
    with snapshot.open("rb") as file:
        number = 0
        while piece := file.read(CHUNK_BYTES):
            yield ((CHUNK, number.to_bytes(8, "big")),), piece
            number += 1


def fetch_snapshot(config: ConnectionConfig, topic: str, partition: int, start: RestoredStart, directory: Path) -> bool:
    """Store the snapshot in a partition's directory, unless one is there from which the log continues; whether it did.

    Raises Damaged, ClusterError.
    """
    store = SnapshotStore(directory / "snapshots")
    if not start.chunks or any(one.log_from >= start.position for one in store.list()):
        return False
    with closing(CommittedReader(config, topic, partition)) as reader:
        messages = reader.messages(start.offset - start.chunks, start.offset)
        store.add(start.position - 1, _values(messages, start.chunks, f"{topic}/{partition}"))
    return True


def _values(messages: Iterator[list[Message]], count: int, where: str) -> Iterator[bytes]:
    number = 0
    for one in (one for some in messages for one in some):
        if (CHUNK, number.to_bytes(8, "big")) not in (one.headers() or ()):
            raise Damaged(f"piece {number} of the snapshot is not at offset {one.offset()}", subject=where)
        number += 1
        yield one.value() or b""
    if number != count:
        raise Damaged(f"the snapshot has {number} of {count} pieces", subject=where)
