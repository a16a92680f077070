"""Segments, records and stores of Zeebe, made by hand, byte for byte as a broker of version 8.6 writes them."""

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import google_crc32c
import msgspec

NO_REQUEST = (1 << 64) - 1
EVENT, COMMAND, REJECTION = 0, 1, 2
CHECKPOINT = 254


@dataclass(frozen=True)
class MadeRecord:
    position: int
    record_type: int = EVENT
    value_type: int = 5
    intent: int = 2
    source: int = -1
    key: int = -1
    value: Any = field(default_factory=dict)
    flags: int = 0
    request: int = NO_REQUEST
    time_ms: int = 1_794_767_636_000

    def encoded(self) -> bytes:
        metadata = struct.pack(
            "<HHHHBiQHBBiiiHBQ", 40, 200, 0, 5, self.record_type, -1, self.request, 4, self.value_type, self.intent,
            8, 6, 0, 1, 255, NO_REQUEST,
        )  # fmt: skip
        metadata += struct.pack("<I", 0) * 2
        value = msgspec.msgpack.encode(self.value) if not isinstance(self.value, bytes) else self.value
        size = 52 + len(metadata) + len(value)
        head = struct.pack(
            "<iQHBBqqqqi", size, 0, 1, self.flags, 0, self.position, self.source, self.key, self.time_ms, len(metadata)
        )
        return (head + metadata + value).ljust((size + 7) // 8 * 8, b"\0")


def create(position: int, checkpoint: int) -> MadeRecord:
    return MadeRecord(position, COMMAND, CHECKPOINT, 0, value={"id": checkpoint, "position": -1})


def created(position: int, checkpoint: int, source: int) -> MadeRecord:
    return MadeRecord(position, EVENT, CHECKPOINT, 1, source, value={"id": checkpoint, "position": source})


def frame(index: int, entry: bytes, lowest: int = -1) -> bytes:
    payload = struct.pack("<HHHHQqI", 16, 2, 7, 2, index, lowest, len(entry)) + entry
    return struct.pack("<BHHHHqi", 1, 12, 1, 7, 2, google_crc32c.value(payload), len(payload)) + payload


def raft_entry(term: int, kind: int = 2) -> bytes:
    return struct.pack("<HHHHQB", 9, 1, 8, 3, term, kind)


def batch_entry(term: int, records: Sequence[MadeRecord]) -> bytes:
    batch = b"".join(each.encoded() for each in records)
    lowest, highest = records[0].position, records[-1].position
    return raft_entry(term, 0) + struct.pack("<HHHHQQI", 16, 2, 8, 3, lowest, highest, len(batch)) + batch


def frames(batches: Iterable[Sequence[MadeRecord]], first_index: int = 1, term: int = 1) -> list[bytes]:
    """A frame for each batch; an empty one is an entry that only Raft uses."""
    return [
        frame(index, batch_entry(term, batch), batch[0].position) if batch else frame(index, raft_entry(term))
        for index, batch in enumerate(batches, first_index)
    ]


def descriptor(number: int, first_index: int, size: int, last_index: int = 0, last_at: int = 0) -> bytes:
    block = struct.pack("<HHHHqqiQI", 32, 3, 7, 2, number, first_index, size, last_index, last_at)
    return struct.pack("<BHHHHq", 2, 8, 4, 7, 2, google_crc32c.value(block)) + block


def segment(
    made: Sequence[bytes], number: int = 1, first_index: int = 1, size: int = 0, *, closed: bool = False
) -> bytes:
    """Frames as a segment; with `closed` its descriptor names the last one, with a `size` zeros follow."""
    body = b"".join(made)
    last_at = 57 + len(body) - len(made[-1]) if made and closed else 0
    last_index = first_index + len(made) - 1 if closed else 0
    size = max(size, 57 + len(body))
    return (descriptor(number, first_index, size, last_index, last_at) + body).ljust(size, b"\0")


@dataclass(frozen=True)
class MadeCopy:
    """One broker's copy of one partition."""

    partition: int
    checkpoint: int = 20
    position: int = 1
    segments: dict[str, bytes] = field(default_factory=dict)
    snapshot_id: str = ""
    snapshot: dict[str, bytes] = field(default_factory=dict)
    node: int = 0
    partitions: int = 1
    status: str = "completed"
    version: str = "8.6.0"
    reason: str = ""

    def manifest(self, form: str = "s3") -> dict[str, Any]:
        common: dict[str, Any] = {
            "id": {"nodeId": self.node, "partitionId": self.partition, "checkpointId": self.checkpoint},
            "descriptor": {
                "snapshotId": self.snapshot_id or None,
                "checkpointPosition": self.position,
                "numberOfPartitions": self.partitions,
                "brokerVersion": self.version,
            },
            **({"failureReason": self.reason} if self.reason else {}),
        }
        if form == "s3":
            return {
                "statusCode": self.status,
                **common,
                "snapshotFiles": {"files": {name: {} for name in self.snapshot}},
                "segmentFiles": {"files": {name: {} for name in self.segments}},
                "createdAt": 1794767636.859740378,
                "modifiedAt": 1794767638.464315653,
            }
        return {
            **common,
            "statusCode": self.status.upper(),
            "snapshot": {"files": [{"name": name} for name in self.snapshot]},
            "segments": {"files": [{"name": name} for name in self.segments]},
            "createdAt": "2026-11-15T18:33:56.859740378Z",
            "modifiedAt": "2026-11-15T18:33:58.464315653Z",
        }

    def files(self, layout: str = "s3") -> dict[str, bytes]:
        """Object names and bytes: `s3` up to 8.8, `s3-8.9`, or `files`."""
        place = f"{self.partition}/{self.checkpoint}/{self.node}"
        head, body = (place, place) if layout == "s3" else (f"manifests/{place}", f"contents/{place}")
        document = json.dumps(self.manifest("files" if layout == "files" else "s3")).encode()
        return {
            f"{head}/manifest.json": document,
            **{f"{body}/segments/{name}": data for name, data in self.segments.items()},
            **{f"{body}/snapshot/{name}": data for name, data in self.snapshot.items()},
        }


def name_of(partition: int, number: int = 1) -> str:
    return f"raft-partition-partition-{partition}-{number}.log"


def copy_of(partition: int, batches: Sequence[Sequence[MadeRecord]], position: int, **changes: Any) -> MadeCopy:
    """A copy with one segment of 64 KiB and no snapshot."""
    data = segment(frames(batches), size=64 << 10)
    return replace(MadeCopy(partition, position=position, segments={name_of(partition): data}), **changes)


def with_snapshot(copy: MadeCopy, snapshot_id: str, metadata: dict[str, Any], files: dict[str, bytes]) -> MadeCopy:
    """The same with a snapshot and its checksum file."""
    inside = {"zeebe.metadata": json.dumps(metadata).encode(), **files}
    lines = "".join(f"{name}   {google_crc32c.value(data):x}\n" for name, data in sorted(inside.items()))
    return replace(copy, snapshot_id=snapshot_id, snapshot={**inside, f"{snapshot_id}.checksum": lines.encode()})


def write_store(root: Path, copies: Iterable[MadeCopy], layout: str = "s3") -> Path:
    for copy in copies:
        for name, data in copy.files(layout).items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return root
