"""Writes buckets of Trivadis kafka-backup with fastavro: the tool's own schema and names."""

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import fastavro

from tests.support.datasets.v1_files import HandRecord

_MAP = {"type": "map", "values": "bytes"}
SCHEMA: dict[str, Any] = {
    "namespace": "ch.tbd.kafka.backuprestore.model.avro",
    "type": "record",
    "name": "AvroKafkaRecord",
    "fields": [
        {"name": "topic", "type": "string"},
        {"name": "partition", "type": "int"},
        {"name": "offset", "type": "long"},
        {"name": "timestamp", "type": "long"},
        {"name": "key", "type": ["bytes", "null"], "default": "null"},
        {"name": "value", "type": ["bytes", "null"], "default": "null"},
        {"name": "headers", "type": [_MAP, "null"], "default": "null"},
    ],
}
_NUMBER = b"\x78\x72\x00\x10java.lang.Number" + bytes.fromhex("86ac951d0b94e08b 02 0000 78 70")


def java_string(text: bytes) -> bytes:
    return bytes.fromhex("aced0005 74") + struct.pack(">H", len(text)) + text


def java_box(name: str, serial: str, kind: bytes, value: bytes, parent: bytes = _NUMBER) -> bytes:
    head = bytes.fromhex("aced0005 73 72") + struct.pack(">H", len(name)) + name.encode() + bytes.fromhex(serial)
    return head + b"\x02\x00\x01" + kind + b"\x00\x05value" + parent + value


def java_array(data: bytes) -> bytes:
    return bytes.fromhex("aced0005 75 72 00025b42 acf317f8060854e0 02 0000 78 70") + struct.pack(">i", len(data)) + data


def java_true() -> bytes:
    return java_box("java.lang.Boolean", "cd207280d59cfaee", b"Z", b"\x01", b"\x78\x70")


def write_file(path: Path, topic: str, partition: int, records: Sequence[HandRecord], codec: str = "deflate") -> None:
    """As the tool writes it: null has become empty, headers are a map."""
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "offset": r.offset,
            "timestamp": r.time,
            "key": r.key or b"",
            "value": r.value or b"",
            "headers": {name.decode(): value for name, value in r.headers} or None,
        }
        for r in records
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, SCHEMA, rows, codec=codec)


def write_bucket(
    root: Path,
    logs: Mapping[tuple[str, int], Sequence[Sequence[HandRecord]]],
    codec: str = "deflate",
    connector: str = "",
) -> None:
    for (topic, partition), files in logs.items():
        folder = root / topic / connector / str(partition) if connector else root / topic / str(partition)
        for records in files:
            write_file(folder / f"{topic}-{partition}-{records[0].offset:015d}.avro", topic, partition, records, codec)
