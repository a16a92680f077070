"""Transaction logs: checks records, finds the end and damage, and returns columns of records.

A log is a header of 16 bytes and records; after the last one are zeros, or nothing. `scan` checks everything that does
not depend on the meaning of transactions: the header, lengths, checksums, end marks, and that zxids follow each other.
It reads forward once, holds a few megabytes, and does not read the holes that a server leaves after records.

A server may write to the file while it is read: the result is about the bytes that were read. A record that is just
being written looks torn; a caller that knows that the log is active reads again, or leaves the record out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

import numpy as np

from logkeep.errors import Damaged
from logkeep.formats.zookeeper import txnlog_kernels as kernels
from logkeep.formats.zookeeper.names import hex_zxid
from logkeep.formats.zookeeper.scanned_log import HEADER, DamageKind, Padding, RecordStretch, ScannedLog
from logkeep.formats.zookeeper.transactions import decode
from logkeep.formats.zookeeper.txnlog_kernels import Longs
from logkeep.formats.zookeeper.txnlog_scan import Scan, Sink, obtained
from logkeep.formats.zookeeper.window import CHUNK_BYTES, ByteWindow

__all__ = [
    "HEADER_BYTES",
    "DamageKind",
    "Padding",
    "RecordStretch",
    "ScannedLog",
    "Sink",
    "TransactionColumns",
    "bodies",
    "digest_in",
    "header",
    "scan",
    "tables",
]

HEADER_BYTES: Final = len(HEADER)
_EVERY_ZXID: Final = (1 << 63) - 1
_ANY_SIZE: Final = (1 << 31) - 1


def header() -> bytes:
    """The header of every log."""
    return HEADER


def scan(
    source: BinaryIO,
    *,
    most_bytes: int | None = None,
    sink: Sink | None = None,
    deep: bool = False,
    start_at: int = 0,
    until_zxid: int | None = None,
    largest_record: int | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> ScannedLog:
    """Scan a log from the current position of `source`, at most `most_bytes`.

    `sink` gets the good `size_bytes`, in order; a view is valid during the call only. `deep`: continue after damage, to
    find all of it and what can be saved. `start_at`: the byte of a record to begin with instead of the header; the sink
    then gets records only. `until_zxid`: the last record to read. `largest_record`: a longer body is damage; without it
    any length is accepted that fits into the rest of the file.
    """
    window = ByteWindow(source, most_bytes, chunk_bytes)
    return Scan(window, sink, until_zxid or _EVERY_ZXID, largest_record or _ANY_SIZE).log(start_at, deep=deep)


@dataclass(frozen=True)
class TransactionColumns:
    """Columns of complete records; `data` has their bytes and is reused for the next ones."""

    data: memoryview
    zxid: Longs
    time_ms: Longs
    session: Longs
    cxid: Longs
    kind: Longs
    body_at: Longs
    """In `data`."""
    body_bytes: Longs
    adler: Longs
    """The checksums of the bodies."""
    position: int
    """Of the first byte of `data` in the file."""


def tables(source: BinaryIO, chunk_bytes: int = CHUNK_BYTES, *, start_at: int = 0) -> Iterator[TransactionColumns]:
    """Checked records of a log, some megabytes at a time. Raises Damaged after those before the first bad one.

    `start_at`: the byte of a record to begin with instead of the header.
    """
    window = ByteWindow(source, chunk_bytes=chunk_bytes)
    if start_at:
        if not window.go_to(start_at):
            raise Damaged(f"the log ends before byte {start_at}")
    elif not window.fill(HEADER_BYTES) or bytes(window.held[:HEADER_BYTES]) != HEADER:
        raise Damaged("not a transaction log: it does not begin with ZKLG and version 2")
    else:
        window.at += HEADER_BYTES
    facts = np.zeros(kernels.FACTS, np.int64)
    rows = np.empty((chunk_bytes // kernels.SMALLEST_RECORD + 1, kernels.ROW_COLUMNS), np.int64)
    more = True
    while more:
        status, at, needed, count = kernels.walk(
            window.buffer, window.at, window.end, _EVERY_ZXID, _ANY_SIZE, facts, rows
        )
        if count:
            data = window.buffer.data[: window.end].toreadonly()
            yield _records(data, rows[:count].T.copy(), window.position - window.at)
        window.at = at
        more = status == kernels.MORE and obtained(window, needed)
    ended = status == kernels.END or (status == kernels.MORE and needed == kernels.FRAME_BYTES)
    position = window.position
    if not ended or not window.only_zeros():
        last = hex_zxid(int(facts[kernels.LAST]))
        what = "does not follow it" if status in (kernels.JUMP, kernels.BAD_ORDER) else "is damaged"
        raise Damaged(f"the record after zxid {last} {what}", subject=f"byte {position}")


def digest_in(log: Iterator[TransactionColumns], zxid: int) -> int | None:
    """The digest of the tree that a server wrote into this transaction; None if it did not, or the log lacks it."""
    for records in log:
        row = int(records.zxid.searchsorted(zxid))
        if row < len(records.zxid) and int(records.zxid[row]) == zxid:
            begin = int(records.body_at[row])
            return decode(bytes(records.data[begin : begin + int(records.body_bytes[row])])).digest
    return None


def _records(data: memoryview, columns: Longs, position: int) -> TransactionColumns:
    return TransactionColumns(
        data=data,
        zxid=columns[kernels.ZXID],
        time_ms=columns[kernels.TIME],
        session=columns[kernels.SESSION],
        cxid=columns[kernels.CXID],
        kind=columns[kernels.KIND],
        body_at=columns[kernels.BODY_AT],
        body_bytes=columns[kernels.BODY_SIZE],
        adler=columns[kernels.SUM],
        position=position,
    )


def bodies(source: BinaryIO) -> Iterator[bytes]:
    """The bodies of all records, checked. Raises Damaged at the first bad one."""
    for records in tables(source):
        data = records.data
        for at, size in zip(records.body_at.tolist(), records.body_bytes.tolist(), strict=True):
            yield bytes(data[at : at + size])
