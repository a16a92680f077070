"""An independent reader of kafka-backup-v1 directories, from the tables of its description. It uses no code of ours.

It walks a partition as the tool's own restore does: the partition index says which segments there are, the segment's
index says after which record to stop, and the record file is read from its first byte on.
"""

import json
import struct
from pathlib import Path
from typing import Any, NamedTuple


class V1Record(NamedTuple):
    offset: int
    time_type: int
    time: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes | None, bytes | None], ...]


class _Bytes:
    def __init__(self, path: Path) -> None:
        self.data, self.at = path.read_bytes(), 1
        assert self.data[0] == 1, f"{path.name} does not begin with 01"

    def number(self, shape: str) -> int:
        (found,) = struct.unpack_from(f">{shape}", self.data, self.at)
        self.at += struct.calcsize(f">{shape}")
        return int(found)

    def text(self) -> bytes | None:
        size = self.number("i")
        assert size >= -1
        if size < 0:
            return None
        self.at += size
        assert self.at <= len(self.data)
        return self.data[self.at - size : self.at]


def segments(topic: Path, partition: int) -> list[tuple[str, int]]:
    index, found = _Bytes(topic / f"index_partition_{partition:03d}"), []
    while index.at < len(index.data):
        name = index.text()
        assert name is not None
        found.append((name.decode(), index.number("q")))
    return found


def records(topic: Path, partition: int) -> list[V1Record]:
    """Every record; asserts that the indexes agree with the records, and that no segment is empty."""
    found: list[V1Record] = []
    for name, start in segments(topic, partition):
        assert name == f"segment_partition_{partition:03d}_from_offset_{start:010d}"
        index, data = _Bytes(topic / f"{name}_index"), _Bytes(topic / f"{name}_records")
        assert (len(index.data) - 1) % 24 == 0
        assert len(index.data) > 1, f"{name} is empty"
        while index.at < len(index.data):
            offset, position, length = (index.number("q") for _ in range(3))
            assert position == data.at
            found.append(_record(data))
            assert (found[-1].offset, data.at) == (offset, position + length)
        assert data.at == len(data.data), f"{name} has bytes behind its last entry"
        assert start in {r.offset for r in found}
    offsets = [r.offset for r in found]
    assert offsets == sorted(set(offsets))
    return found


def _record(data: _Bytes) -> V1Record:
    offset, time_type = data.number("q"), data.number("i")
    time = data.number("q") if time_type >= 0 else None
    key, value = data.text(), data.text()
    headers = tuple((data.text(), data.text()) for _ in range(data.number("i")))
    return V1Record(offset, time_type, time, key, value, headers)


def groups(topic: Path, partition: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((topic / f"consumer_offsets_partition_{partition:03d}").read_bytes())
    return found
