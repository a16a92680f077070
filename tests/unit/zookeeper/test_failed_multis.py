"""Multis that failed, as an observer of 3.4 logs them: tried before they were written, so every part says -1."""

import io
import struct

from logkeep.formats.zookeeper.jute import packed_buffer, packed_int
from logkeep.formats.zookeeper.transactions import HEADER, Kind, Multi, decode
from logkeep.formats.zookeeper.txnlog import tables
from logkeep.zookeeper.survey import compared
from tests.zookeeper.made_server import create, log_bytes

_CREATED = create(7, b"/a", b"data")[HEADER.size :]


def _multi(kinds: tuple[int, int], data: bytes = _CREATED) -> bytes:
    parts = packed_int(kinds[0]) + packed_buffer(data) + packed_int(kinds[1]) + packed_buffer(struct.pack(">i", -101))
    return HEADER.pack(1, 0, 7, 0, Kind.MULTI) + packed_int(2) + parts


VOTER, OBSERVER = _multi((Kind.CREATE, Kind.ERROR)), _multi((Kind.ERROR, Kind.ERROR))


def _differing(one: bytes, other: bytes) -> list[int]:
    found = compared(tables(io.BytesIO(log_bytes([one]))), tables(io.BytesIO(log_bytes([other]))))
    return [zxid for _, differing in found for zxid in differing]


def test_it_is_read_and_changes_nothing() -> None:
    change = decode(OBSERVER).change
    assert isinstance(change, Multi)
    assert not change.applied


def test_members_do_not_disagree_about_it() -> None:
    assert VOTER != OBSERVER
    assert _differing(VOTER, OBSERVER) == []


def test_they_do_about_others() -> None:
    assert _differing(create(7, b"/a"), create(7, b"/b")) == [7]
    assert _differing(VOTER, _multi((Kind.CREATE, Kind.CREATE), _CREATED)) == [7]
    assert _differing(VOTER, create(7, b"/a")) == [7]
