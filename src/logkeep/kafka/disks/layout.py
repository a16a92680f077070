"""The layout of a broker's log directory: names and small files. Pure: names and texts in, values out.

    meta.properties                   cluster and node
    replication-offset-checkpoint     high watermarks, written every few seconds: a lower bound
    log-start-offset-checkpoint       log starts, where they are after the first offset of the first segment
    <topic>-<p>/                      a log; with the suffix .<32 hex>-delete, -future or -stray, one being moved
      partition.metadata              the topic id
      leader-epoch-checkpoint         the first offset of each leader epoch
      <20 digits>.log                 a segment, named after its first offset
      ….cleaned ….swap ….deleted      left by an interrupted cleaner or deletion

Files of the last line are treated as a starting broker does: `.deleted` and `.cleaned` do not count. A `.swap` is a
finished clean: it replaces all segments that begin inside it. A `.swap` that begins at or after a `.cleaned` belongs
to a split that never ended, and does not count either.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from logkeep.kafka.client.topology import TopicPartition

METADATA_TOPIC = "__cluster_metadata"

_LOG = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,9})")
_MOVING = re.compile(r"(?P<log>.+-\d{1,9})\.[0-9a-f]{32}-(?P<how>delete|future|stray)")
_SEGMENT = re.compile(r"(?P<base>\d{20})\.log(?P<suffix>|\.cleaned|\.swap|\.deleted)")


class LogDirState(StrEnum):
    """What a directory of a log is to its broker."""

    CURRENT = "current"
    FUTURE = "future"
    DELETED = "delete"
    STRAY = "stray"


@dataclass(frozen=True)
class LogDirectory:
    name: str
    log: TopicPartition
    state: LogDirState


@dataclass(frozen=True)
class Identity:
    """The cluster and node that a directory belongs to."""

    cluster_id: str
    node: int


@dataclass(frozen=True, order=True)
class SegmentFile:
    base: int
    name: str


@dataclass(frozen=True)
class Segments:
    """The files of a log that count, in order, and those that do not, each with its reason."""

    taken: tuple[SegmentFile, ...]
    left_out: tuple[tuple[str, str], ...]


def log_directory(name: str) -> LogDirectory | None:
    """The log that a directory name means; None for anything that is no log of a topic, such as the metadata log."""
    moving = _MOVING.fullmatch(name)
    plain = _LOG.fullmatch(moving["log"] if moving else name)
    if plain is None or plain["topic"] == METADATA_TOPIC:
        return None
    state = LogDirState(moving["how"]) if moving else LogDirState.CURRENT
    return LogDirectory(name, TopicPartition(plain["topic"], int(plain["partition"])), state)


def swap_files(names: Iterable[str]) -> tuple[SegmentFile, ...]:
    """The `.swap` files that count."""
    found = _by_suffix(names)
    first_cleaned = min((f.base for f in found.get(".cleaned", ())), default=None)
    return tuple(sorted(f for f in found.get(".swap", ()) if first_cleaned is None or f.base < first_cleaned))


def segments(names: Iterable[str], swap_ends: Mapping[str, int]) -> Segments:
    """The files that are the log. `swap_ends` is the offset after the last record of each `.swap` that counts."""
    known = list(names)
    found, swaps = _by_suffix(known), swap_files(known)
    low = min((f.base for f in swaps), default=0)
    high = max((max(swap_ends[f.name], f.base) for f in swaps), default=0)
    replaced = [f for f in found.get("", ()) if low <= f.base < high]
    unfinished = [f for f in found.get(".swap", ()) if f not in swaps]
    out = [(f.name, "a cleaner had replaced it") for f in replaced]
    out += [(f.name, "it belongs to a split that never ended") for f in unfinished]
    out += [(f.name, "a cleaner had not finished it") for f in found.get(".cleaned", ())]
    out += [(f.name, "it was about to be deleted") for f in found.get(".deleted", ())]
    taken = [f for f in found.get("", ()) if f not in replaced] + list(swaps)
    return Segments(tuple(sorted(taken)), tuple(sorted(out)))


def _by_suffix(names: Iterable[str]) -> dict[str, list[SegmentFile]]:
    found: dict[str, list[SegmentFile]] = {}
    for name in names:
        if match := _SEGMENT.fullmatch(name):
            found.setdefault(match["suffix"], []).append(SegmentFile(int(match["base"]), name))
    return found


def identity(text: str) -> Identity | None:
    """Cluster and node in `meta.properties`, of a KRaft or a ZooKeeper-based cluster; None if it does not name both."""
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    cluster, node = found.get("cluster.id", "").strip(), found.get("node.id", found.get("broker.id", "")).strip()
    return Identity(cluster, int(node)) if cluster and node.isdecimal() else None


def topic_id(text: str) -> UUID | None:
    """The topic id in `partition.metadata`; None if it cannot be read."""
    found = re.search(r"^topic_id:\s*([A-Za-z0-9_-]{22})\s*$", text, re.M)
    if found is None:
        return None
    try:
        return UUID(bytes=base64.urlsafe_b64decode(found[1] + "=="))
    except (binascii.Error, ValueError):
        return None


def offsets_checkpoint(text: str) -> dict[TopicPartition, int] | None:
    """`topic partition offset` lines after a version and a count; None if it is not complete."""
    rows = _rows(text, 3)
    if rows is None:
        return None
    return {TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in rows}


def epochs_checkpoint(text: str) -> tuple[tuple[int, int], ...] | None:
    """`epoch offset` lines, as (epoch, first offset); None if it is not complete."""
    rows = _rows(text, 2)
    return None if rows is None else tuple(sorted((int(epoch), int(offset)) for epoch, offset in rows))


def _rows(text: str, columns: int) -> list[list[str]] | None:
    lines = text.splitlines()
    if len(lines) < 2 or lines[0].strip() != "0" or not lines[1].strip().isdecimal():
        return None
    rows = [line.split() for line in lines[2:] if line.strip()]
    complete = len(rows) == int(lines[1]) and all(len(row) == columns for row in rows)
    numbers = (word for row in rows for word in row[columns == 3 :])  # a topic name comes first in rows of three
    return rows if complete and all(re.fullmatch(r"-?\d{1,19}", word) for word in numbers) else None
