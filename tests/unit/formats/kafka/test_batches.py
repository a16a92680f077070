"""Walking a log: whole batches, torn tails, damage, old formats."""

import struct
from dataclasses import replace

import pytest

from logkeep.formats.kafka.batches import HEADER, HEADER_BYTES, WalkEnd, first_broken, walk
from tests.support.kafka.handmade_batches import Batch, dense

THREE = [dense(5, 2), Batch(9, delta=4, count=2, epoch=3, payload=b"x" * 40), dense(14, 1)]


def _log(batches: list[Batch]) -> bytes:
    return b"".join(b.encode() for b in batches)


def test_the_header_is_61_bytes() -> None:
    assert HEADER.itemsize == HEADER_BYTES


def test_whole_batches_are_found_with_their_fields() -> None:
    walked = walk(_log(THREE))
    assert (walked.stop, walked.stopped_at) == (WalkEnd.END, len(_log(THREE)))
    assert walked.batches.base_offsets.tolist() == [5, 9, 14]
    assert walked.batches.last_offsets.tolist() == [6, 13, 14]
    assert walked.batches.headers["leader_epoch"].tolist() == [0, 3, 0]
    assert walked.batches.sizes.tolist() == [len(b.encode()) for b in THREE]
    assert first_broken(_log(THREE), walked.batches) is None


def test_nothing_is_an_empty_log() -> None:
    walked = walk(b"")
    assert (len(walked.batches), walked.stop, walked.batches.end) == (0, WalkEnd.END, 0)


def test_every_cut_is_torn_and_keeps_the_batches_before_it() -> None:
    data = _log(THREE)
    ends = [sum(len(b.encode()) for b in THREE[: i + 1]) for i in range(3)]
    for size in range(len(data)):
        walked = walk(data[:size])
        assert len(walked.batches) == sum(end <= size for end in ends)
        assert walked.stop is (WalkEnd.END if size in (0, *ends) else WalkEnd.TORN), size


def test_every_changed_byte_under_the_checksum_is_noticed() -> None:
    data = _log(THREE)
    first = len(THREE[0].encode())
    for at in range(first + 17, first + len(THREE[1].encode())):
        broken = bytearray(data)
        broken[at] ^= 0x10
        walked = walk(broken)
        assert walked.stop is WalkEnd.DAMAGED or first_broken(broken, walked.batches) == 1, at


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (replace(THREE[1], base=6), "rise"),
        (replace(THREE[1], base=-1), "offset"),
        (replace(THREE[1], delta=-1), "offset"),
        (replace(THREE[1], base=2**63 - 2), "offset"),
        (replace(THREE[1], count=6), "count"),
        (replace(THREE[1], count=-1), "count"),
        (replace(THREE[1], delta=50, count=6), "count"),
    ],
)
def test_headers_that_cannot_be_right_are_damage(bad: Batch, reason: str) -> None:
    walked = walk(_log([THREE[0], bad, THREE[2]]))
    assert (walked.stop, len(walked.batches)) == (WalkEnd.DAMAGED, 1)
    assert walked.stopped_at == len(THREE[0].encode())
    assert reason in walked.reason


def test_a_compressed_batch_may_hold_more_records_than_bytes() -> None:
    walked = walk(Batch(0, delta=99, count=100, attributes=4, payload=b"tiny").encode())
    assert (walked.stop, len(walked.batches)) == (WalkEnd.END, 1)


def test_offsets_must_rise_from_behind_what_is_known() -> None:
    assert walk(_log(THREE), after=4).stop is WalkEnd.END
    assert walk(_log(THREE), after=5).stop is WalkEnd.DAMAGED


@pytest.mark.parametrize("length", [0, 1, 48, -1, -(2**31)])
def test_an_impossible_length_is_damage_not_a_torn_tail(length: int) -> None:
    data = bytearray(_log(THREE))
    struct.pack_into(">i", data, len(THREE[0].encode()) + 8, length)
    walked = walk(data)
    assert (walked.stop, len(walked.batches)) == (WalkEnd.DAMAGED, 1)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("payload", [14, 200])
def test_old_messages_are_named_as_such(version: int, payload: int) -> None:
    old = struct.pack(">qiIb", 77, payload, 0, version) + bytes(payload - 5)
    walked = walk(_log(THREE) + old)
    assert (walked.stop, len(walked.batches)) == (WalkEnd.OLD_FORMAT, 3)
    assert f"version {version} at offset 77" in walked.reason


def test_zeros_that_were_set_aside_are_damage_not_an_old_format() -> None:
    assert walk(_log(THREE) + bytes(500)).stop is WalkEnd.DAMAGED


def test_an_unknown_version_is_damage_even_in_a_torn_batch() -> None:
    data = bytearray(_log(THREE))
    data[len(data) - len(THREE[2].encode()) + 16] = 3
    assert walk(data[:-1]).stop is WalkEnd.DAMAGED
