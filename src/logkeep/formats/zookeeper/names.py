"""Parses the names of files in `version-2` as a server does; helpers for zxids.

A server splits a name at its dots, takes the first part as the kind and the second as a hexadecimal zxid, and ignores
the rest: `log.5f.bak` is a live log for it. Such names are `stray` here: never used, always reported.
"""

import re
from enum import StrEnum
from typing import NamedTuple

_NAME = re.compile(r"(?P<kind>log|snapshot)\.(?P<zxid>[0-9a-fA-F]{1,16})(?P<rest>\..*)?")
_SUFFIXES = {"": "", ".gz": "gz", ".snappy": "snappy"}


class FileKind(StrEnum):
    LOG = "log"
    SNAPSHOT = "snapshot"


class SnapshotPacking(StrEnum):
    """How a server packed a snapshot; logs are always plain."""

    PLAIN = ""
    GZIP = "gz"
    SNAPPY = "snappy"


class FileName(NamedTuple):
    """`zxid`: of the first record of a log; the last one applied when a snapshot was begun."""

    kind: FileKind
    zxid: int
    packing: SnapshotPacking
    stray: bool
    """A server would read it, but no server wrote it."""


def parse_name(name: str) -> FileName | None:
    """None for a name that no server reads."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    kind, zxid, rest = FileKind(match["kind"]), int(match["zxid"], 16), match["rest"] or ""
    packed = kind is FileKind.SNAPSHOT and rest in _SUFFIXES
    usual = zxid <= 0x7FFF_FFFF_FFFF_FFFF and match["zxid"] == f"{zxid:x}" and (packed or not rest)
    return FileName(kind, zxid, SnapshotPacking(_SUFFIXES[rest]) if packed else SnapshotPacking.PLAIN, not usual)


def log_name(zxid: int) -> str:
    return f"log.{zxid:x}"


def snapshot_name(zxid: int) -> str:
    return f"snapshot.{zxid:x}"


def epoch_of(zxid: int) -> int:
    return zxid >> 32


def counter_of(zxid: int) -> int:
    return zxid & 0xFFFF_FFFF


def hex_zxid(zxid: int) -> str:
    return f"0x{zxid:x}"


def hex_or_none(zxid: int | None) -> str | None:
    return None if zxid is None else hex_zxid(zxid)


def follows(earlier: int, later: int) -> bool:
    """Whether `later` can be the transaction right after `earlier`: the next number, or the first of a later epoch.

    A skipped epoch is legal and looks like a missing one: only a digest can distinguish them.
    """
    if epoch_of(later) == epoch_of(earlier):
        return later == earlier + 1
    return epoch_of(later) > epoch_of(earlier) and counter_of(later) == 1
