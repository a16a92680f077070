"""Writes archives of OSO kafka-backup by hand, as the tool lays them out."""

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.datasets.v1_files import HandRecord

CODECS = {"none": (0, ""), "zstd": (1, ".zst"), "lz4": (2, ".lz4")}


def _sized(data: bytes | None) -> bytes:
    return struct.pack("<i", -1) if data is None else struct.pack("<i", len(data)) + data


def with_own_headers(record: HandRecord) -> HandRecord:
    """As the tool archives it by default."""
    own = [
        (b"x-original-offset", struct.pack("<q", record.offset)),
        (b"x-original-timestamp", struct.pack("<q", record.time)),
    ]
    return HandRecord(record.offset, record.key, record.value, record.time, 0, [*record.headers, *own])


def record_bytes(record: HandRecord) -> bytes:
    headers = b"".join(struct.pack("<H", len(n)) + n + _sized(v) for n, v in record.headers)
    fields = struct.pack("<qq", record.time, record.offset) + _sized(record.key) + _sized(record.value)
    rest = fields + struct.pack("<H", len(record.headers)) + headers
    return struct.pack("<I", len(rest)) + rest


def packed(codec: str, plain: bytes) -> bytes:
    if codec == "lz4":
        block: bytes = pa.Codec("lz4_raw").compress(plain, asbytes=True)
        return struct.pack("<I", len(plain)) + block
    if codec == "zstd":  # a stream: its frame does not say its size
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(plain)
        return bytes(sink.getvalue().to_pybytes())
    return plain


def segment_bytes(records: Sequence[HandRecord], codec: str, body: bytes | None = None, version: int = 1) -> bytes:
    plain = b"".join(map(record_bytes, records))
    first, last = (records[0].offset, records[-1].offset) if records else (0, -1)
    head = struct.pack("<4sBBHQqq", b"KBAK", version, CODECS[codec][0], 0, len(records), first, last)
    data = head + (packed(codec, plain) if body is None else body)
    return data + struct.pack("<I", zlib.crc32(data)) + b"BKAE"


def write_archive(
    root: Path,
    logs: Mapping[tuple[str, int], Sequence[Sequence[HandRecord]]],
    codec: str = "zstd",
    *,
    name: str = "nightly",
    groups: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None,
    gaps: Mapping[tuple[str, int], Sequence[tuple[int, int]]] | None = None,
    topic_fields: Mapping[str, Mapping[str, Any]] | None = None,
    hashed: bool = False,
    **fields: Any,
) -> Path:
    """The directory of an archive with its manifest; `hashed` as since version 0.25."""
    folder, topics = root / name, dict[str, Any]()
    for (topic, partition), segments in logs.items():
        listed = []
        for records in segments:
            where = f"topics/{topic}/partition={partition}/segment-{records[0].offset:020d}.bin{CODECS[codec][1]}"
            (folder / where).parent.mkdir(parents=True, exist_ok=True)
            data = segment_bytes(records, codec)
            (folder / where).write_bytes(data)
            listed.append(
                {
                    "key": f"{name}/{where}",
                    "start_offset": records[0].offset,
                    "end_offset": records[-1].offset,
                    "record_count": len(records),
                    "uncompressed_size": sum(len(record_bytes(r)) for r in records),
                    "uploaded_at": 5,
                    **({"sha256": hashlib.sha256(data).hexdigest()} if hashed else {}),
                }
            )
        made = topics.setdefault(topic, {"name": topic, "partitions": [], **(topic_fields or {}).get(topic, {})})
        lost = [
            {"start_offset": a, "end_offset": b, "reason": "expired", "detected_at": 1}
            for a, b in (gaps or {}).get((topic, partition), ())
        ]
        made["partitions"].append({"partition_id": partition, "segments": listed, "gaps": lost})
    manifest = {"backup_id": name, "created_at": 1, "compression": codec, "topics": list(topics.values()), **fields}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "offsets.db").write_bytes(b"SQLite")
    if groups is not None:
        document = {"snapshot_time": 1, "groups": [{"group_id": g, "offsets": o} for g, o in groups.items()]}
        (folder / "consumer-groups-snapshot.json").write_text(json.dumps(document))
    return folder
