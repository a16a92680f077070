"""Snapshots of a partition's state: their id, their checksum file, and the positions in `zeebe.metadata`.

An id is `index-term-processed-exported-node`; older ones have no node. The checksum file `<id>.checksum` has a line
`name   hex` for each file, with its CRC-32C without leading zeros; lines that begin with `;` are comments.
"""

import json
import re
from dataclasses import dataclass

import msgspec

from logkeep.errors import Damaged

METADATA_FILE = "zeebe.metadata"
MAX_CHECKSUMS = 4 << 20
_ID = re.compile(r"([0-9]{1,19})-([0-9]{1,19})-([0-9]{1,19})-([0-9]{1,19})(?:-([0-9a-z]{1,40}))?(?:-[0-9a-f]{1,16})?")
_LINE = re.compile(r"(\S{1,255})\s+([0-9a-fA-F]{1,8})")


@dataclass(frozen=True)
class SnapshotId:
    """What the name of a snapshot says."""

    index: int
    term: int
    processed: int
    exported: int


class SnapshotMetadata(msgspec.Struct, frozen=True, rename="camel"):
    """`zeebe.metadata`. Positions that a version does not write are null."""

    version: int = 0
    processed_position: int | None = None
    exported_position: int | None = None
    last_followup_event_position: int | None = None
    max_exported_position: int | None = None


def parse_snapshot_id(text: str) -> SnapshotId | None:
    """None if it is not the name of a snapshot."""
    found = _ID.fullmatch(text)
    return SnapshotId(*(int(part) for part in found.groups()[:4])) if found else None


def checksum_file(snapshot_id: str) -> str:
    """The name of a snapshot's checksum file."""
    return f"{snapshot_id}.checksum"


def read_checksums(data: bytes, subject: str = "") -> dict[str, int]:
    """The CRC-32C of each file of a snapshot. Raises Damaged."""
    found = dict[str, int]()
    for number, line in enumerate(_text(data, subject).splitlines(), 1):
        if not line.strip() or line.startswith(";"):
            continue
        parts = _LINE.fullmatch(line.strip())
        if parts is None:
            raise Damaged(f"line {number} of the checksum file is not a name and a checksum", subject=subject)
        if parts[1] in found:
            raise Damaged(f"the checksum file has two lines for {parts[1]}", subject=subject)
        found[parts[1]] = int(parts[2], 16)
    return found


def read_metadata(data: bytes, subject: str = "") -> SnapshotMetadata:
    """Raises Damaged."""
    try:
        return msgspec.convert(json.loads(_text(data, subject)), SnapshotMetadata)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{METADATA_FILE} cannot be read", subject=subject) from error


def _text(data: bytes, subject: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Damaged("it is not text", subject=subject) from error
