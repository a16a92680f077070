"""A reader of transaction logs without any cleverness: one record after the other, from bytes that are all there."""

import struct
import zlib
from typing import NamedTuple

from tests.support.zookeeper.encoding import LOG_HEADER


class SlowRecord(NamedTuple):
    position: int
    zxid: int
    time_ms: int
    adler: int
    body: bytes

    @property
    def end(self) -> int:
        return self.position + 12 + len(self.body) + 1


def record_at(log: bytes, at: int) -> SlowRecord | None:
    """The record that begins there, if it is good."""
    if len(log) - at < 45:
        return None
    adler, size = struct.unpack_from(">qi", log, at)
    body = log[at + 12 : at + 12 + max(size, 0)]
    if size < 32 or len(body) != size or log[at + 12 + size : at + 13 + size] != b"B" or zlib.adler32(body) != adler:
        return None
    _, _, zxid, time_ms, _ = struct.unpack_from(">qiqqi", body)
    return SlowRecord(at, zxid, time_ms, adler, body)


def good_records(log: bytes) -> list[SlowRecord]:
    """From the header on, as long as each follows the one before."""
    found: list[SlowRecord] = []
    at = 16
    while log[:16] == LOG_HEADER and (record := record_at(log, at)) is not None:
        before = found[-1].zxid if found else 0
        next_epoch = record.zxid >> 32 > before >> 32 and record.zxid & 0xFFFFFFFF == 1
        if record.zxid <= before or (found and record.zxid != before + 1 and not next_epoch):
            break
        found.append(record)
        at = record.end
    return found


def ends_well(log: bytes, at: int) -> bool:
    """Whether nothing but zeros stand behind the last good record."""
    return log[:16] == LOG_HEADER and not any(log[at:])


def next_good(log: bytes, at: int, after_zxid: int) -> SlowRecord | None:
    """The first good record of a later zxid, wherever it begins."""
    every = (record_at(log, position) for position in range(at, len(log) - 44))
    return next((record for record in every if record is not None and record.zxid > after_zxid), None)
