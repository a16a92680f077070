"""The least that a client can do to send archived batches: what one and two connections get out of a broker.

Nothing is checked, remembered or proven: segments are mapped, each batch is copied, its header and CRC-32C are written
as a broker wants them, and five requests are in flight.
"""

import mmap
import multiprocessing
import struct
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import google_crc32c
import numpy as np

from logkeep.formats.kafka.batches import walk
from logkeep.kafka.client.connection import Connection
from logkeep.kafka.client.frames import ReceiveBuffer
from logkeep.kafka.client.produce import API, VERSION, OutgoingBatch, parse, request_parts
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition

_IN_FLIGHT = 5


@dataclass(frozen=True)
class Files:
    """The segments of some partitions, and where they go."""

    bootstrap: str
    topic: str
    partitions: tuple[tuple[int, tuple[Path, ...]], ...]


@dataclass(frozen=True)
class Sent:
    started: float
    ended: float
    bytes: int
    cpu_s: float


class Fastest(NamedTuple):
    mb_per_s: float
    cpu_s_per_gb: float


def raw_produce(files: Files) -> Sent:
    settings = ClientSettings(endpoints(files.bootstrap))
    started, cpu_s, total = time.time(), time.process_time(), 0
    with closing(Connection.open(settings.bootstrap[0], settings)) as connection:
        for partition, segments in files.partitions:
            for segment in segments:
                total += _one(connection, TopicPartition(files.topic, partition), segment)
    return Sent(started, time.time(), total, time.process_time() - cpu_s)


def fastest(bootstrap: str, topic: str, segments: Sequence[Sequence[Path]], connections: int) -> Fastest:
    """With so many connections, each in a process of its own. Partitions are those of `segments`."""
    parts = list(enumerate(tuple(some) for some in segments))
    works = [Files(bootstrap, topic, tuple(parts[i::connections])) for i in range(connections)]
    with ProcessPoolExecutor(connections, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(time.sleep, [0.5] * connections))
        done = list(pool.map(raw_produce, works))
    size, seconds = sum(d.bytes for d in done), max(d.ended for d in done) - min(d.started for d in done)
    return Fastest(size / 1e6 / seconds, sum(d.cpu_s for d in done) / (size / 1e9))


def _one(connection: Connection, log: TopicPartition, segment: Path) -> int:
    replies = ReceiveBuffer()
    with segment.open("rb") as file:
        plain = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    batches = walk(plain).batches
    for start, size in zip(batches.positions.tolist(), batches.sizes.tolist(), strict=True):
        batch = bytearray(plain[start : start + size])
        struct.pack_into(">q", batch, 0, 0)
        struct.pack_into(">i", batch, 12, -1)
        struct.pack_into(">qhi", batch, 43, -1, -1, -1)
        struct.pack_into(">I", batch, 17, google_crc32c.value(np.frombuffer(batch, np.uint8)[21:]))
        if connection.in_flight >= _IN_FLIGHT:
            _acknowledged(connection, replies)
        connection.send_raw(API, VERSION, request_parts([OutgoingBatch(log, batch)]))
    while connection.in_flight:
        _acknowledged(connection, replies)
    return int(batches.sizes.sum())


def _acknowledged(connection: Connection, replies: ReceiveBuffer) -> None:
    (ack,) = parse(connection.receive_raw(replies)).acks
    assert not ack.error, ack
