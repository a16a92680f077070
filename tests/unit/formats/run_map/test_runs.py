"""Run maps: what a builder joins, where a position goes on, golden bytes, and what a reader refuses."""

import struct
import zlib

import google_crc32c
import numpy as np
import pytest

from logkeep.errors import Damaged, FormatTooNew
from logkeep.formats.run_map.file_format import Route, decode, decode_all, encode, unbundle
from logkeep.formats.run_map.runs import RunMap, RunMapBuilder
from tests.support.kafka.run_maps import encode_all

GOLDEN = bytes.fromhex(
    "4c4b524d4150303103000000885a283c0a0000000000000028000000000000003a01000000000000789c636080005628cd09"
    "a5751819b002983a9834079406000cb7004a"
)
GOLDEN_MANY = bytes.fromhex(
    "4c4b524d4153303102000000c54db72606006f7264657273000000000b006f72646572732d636f707903000000440000004c"
    "4b524d4150303103000000885a283c0a0000000000000028000000000000003a01000000000000789c636080005628cd09a5"
    "751819b002983a9834079406000cb7004a0c007a61686c756e67656e2dc3a40700000001007800000000440000004c4b524d"
    "4150303103000000885a283c0a0000000000000028000000000000003a01000000000000789c636080005628cd09a5751819"
    "b002983a9834079406000cb7004a"
)


def _small() -> RunMap:
    """Source offsets 10..14, 20 and 30..37 of [10, 40), behind 300 records that were there before."""
    builder = RunMapBuilder(10, 40, 300)
    builder.extend(np.array([[10, 3], [13, 2], [20, 1]], np.int64))
    builder.append(30, 8)
    return builder.finish()


def test_neighbours_are_one_run() -> None:
    runs = _small()
    assert [runs.source.tolist(), runs.target.tolist(), runs.n.tolist()] == [[10, 20, 30], [300, 305, 306], [5, 1, 8]]
    assert (runs.records, runs.first, runs.target_end) == (14, 10, 314)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (0, (300, False)),
        (10, (300, True)),
        (14, (304, True)),
        (15, (305, False)),
        (20, (305, True)),
        (21, (306, False)),
        (37, (313, True)),
        (38, (314, False)),
        (40, (314, False)),
        (2**63 - 1, (314, False)),
    ],
)
def test_a_position_goes_on_at_the_next_restored_record(offset: int, expected: tuple[int, bool]) -> None:
    assert _small().translate(offset) == expected


def test_an_empty_map_sends_everybody_to_the_end() -> None:
    runs = RunMapBuilder(5, 9, 7).finish()
    assert runs.translate(6) == (7, False)
    assert (runs.records, runs.first, runs.records_before(9), decode(encode(runs))) == (0, 9, 0, runs)


def test_records_can_stand_at_their_own_offsets_with_a_filled_end() -> None:
    builder = RunMapBuilder(100, 200, 0)
    builder.keep(np.array([[110, 5], [120, 3]], np.int64))
    builder.skip_to(200)
    runs = builder.finish()
    assert runs.at([100, 112, 115, 123, 200])[0].tolist() == [110, 112, 120, 200, 200]
    assert runs.placed_before(121) == 6


def test_a_map_only_rises() -> None:
    builder = RunMapBuilder(10, 40, 5)
    builder.append(20, 4)
    for rows in ([[23, 30, 1]], [[24, 8, 1]], [[30, 30, 11]], [[30, 30, 2], [31, 40, 1]], [[30, 30, 2], [35, 31, 1]]):
        with pytest.raises(ValueError, match="must rise"):
            builder.place(np.array(rows, np.int64))
    with pytest.raises(ValueError, match="must rise"):
        builder.skip_to(8)
    with pytest.raises(ValueError, match="must rise"):
        RunMapBuilder(10, 40, 5).append(9, 1)
    assert builder.finish().records == 4


def test_golden_bytes_are_read_for_ever() -> None:
    assert decode(GOLDEN) == _small()
    routes = {Route("orders", 0, "orders-copy", 3): _small(), Route("zahlungen-ä", 7, "x", 0): _small()}
    assert decode_all(GOLDEN_MANY) == routes
    assert list(unbundle(GOLDEN_MANY)) == sorted(routes)


def test_what_is_written_today_is_the_golden_form() -> None:
    stored = encode(_small())
    assert (stored[:12], stored[16:40]) == (GOLDEN[:12], GOLDEN[16:40])
    assert zlib.decompress(stored[40:]) == zlib.decompress(GOLDEN[40:])


@pytest.mark.parametrize("data", [GOLDEN, GOLDEN_MANY])
def test_every_changed_byte_is_noticed(data: bytes) -> None:
    for at in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            with pytest.raises((Damaged, FormatTooNew)):
                decode_all(bytes(changed)) if data is GOLDEN_MANY else decode(bytes(changed))


@pytest.mark.parametrize("data", [GOLDEN, GOLDEN_MANY])
def test_every_shorter_or_longer_file_is_noticed(data: bytes) -> None:
    for changed in [data[:size] for size in range(len(data))] + [data + b"\0"]:
        with pytest.raises(Damaged):
            decode_all(changed) if data is GOLDEN_MANY else decode(changed)


def _forged(count: int, bounds: tuple[int, int, int], columns: list[list[int]], family: bytes = b"LKRMAP01") -> bytes:
    """Bytes with a right checksum, whatever they say."""
    plain = b"".join(struct.pack(f"<{len(column)}q", *column) for column in columns)
    body = struct.pack("<qqq", *bounds) + zlib.compress(plain)
    head = family + struct.pack("<I", count)
    return head + struct.pack("<I", google_crc32c.extend(google_crc32c.value(head), body)) + body


@pytest.mark.parametrize(
    ("count", "bounds", "columns"),
    [
        (1, (0, 5, 5), [[0], [0], [0]]),
        (1, (0, 5, 5), [[-1], [0], [1]]),
        (1, (0, 5, 5), [[0], [-1], [1]]),
        (1, (0, 5, 5), [[0], [0], [6]]),
        (1, (0, 5, 4), [[0], [0], [5]]),
        (1, (6, 5, 5), [[0], [0], [1]]),
        (1, (-1, 5, 5), [[0], [0], [1]]),
        (1, (0, 5, -1), [[0], [0], [1]]),
        (1, (0, 5, 5), [[2**63 - 1], [0], [1]]),
        (2, (0, 5, 5), [[2**63 - 1, 2**63 - 1], [0, 0], [1, 1]]),
        (2, (0, 5, 5), [[0, 0], [2**62, 2**63 - 1], [2**62, 2**62]]),
        (2, (0, 5, 5), [[0], [0], [1]]),
        (2**32 - 1, (0, 5, 5), [[0], [0], [1]]),
        (2**26, (0, 5, 5), [[0], [0], [1]]),
    ],
)
def test_a_map_that_cannot_be_is_refused(count: int, bounds: tuple[int, int, int], columns: list[list[int]]) -> None:
    with pytest.raises(Damaged):
        decode(_forged(count, bounds, columns))


def test_a_later_version_is_named_as_such() -> None:
    with pytest.raises(FormatTooNew):
        decode(_forged(0, (0, 0, 0), [], b"LKRMAP02"))
    assert decode(_forged(0, (0, 0, 0), [])).records == 0


def test_a_dense_log_needs_one_run_whatever_its_length() -> None:
    builder = RunMapBuilder(0, 10**9, 0)
    for start in range(0, 10**9, 10**6):
        builder.append(start, 10**6)
    assert len(builder.finish()) == 1
    assert len(encode_all({Route("t", 0, "t", 0): builder.finish()})) < 120
