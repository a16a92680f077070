"""Damage to logs in zstd frames, seen by `verify --level data`: changed, cut, swapped, lying, exploding."""

import hashlib
import struct

import pytest

from logkeep.formats.zstd_frames import packed_frame
from logkeep.kafka.logs.batch_check import check_logs
from logkeep.model.segments import Codec
from logkeep.repository.parts import Expected
from logkeep.repository.verify.checks import HashUnit
from logkeep.store.memory import MemoryStore
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.stored_segments import Packed, expected, log_of

PACKED = Packed.of(log_of([(700_000, 0)] * 10 + [(700_000, 4)] * 5))
STORED = b"".join(PACKED.frames)
TRUE = expected("x", STORED, PACKED.log)


def found(stored: bytes, row: Expected = TRUE) -> dict[str, str]:
    store = MemoryStore()
    store.put_new("x", stored)
    result = check_logs(HashUnit(store, [row]), lambda _: None)
    return {finding.code: finding.what for finding in result.findings}


def test_a_whole_object_has_no_findings() -> None:
    assert len(PACKED.frames) >= 4
    assert found(STORED) == {}


@pytest.mark.parametrize("at", [0, 4, 5, 8, 40, len(PACKED.frames[0]) + 3, len(STORED) // 2, len(STORED) - 1])
def test_every_flipped_bit_is_found(at: int) -> None:
    flipped = STORED[:at] + bytes([STORED[at] ^ 4]) + STORED[at + 1 :]
    assert "hash-mismatch" in found(flipped)


def test_a_cut_object_is_found_by_its_size() -> None:
    assert set(found(STORED[:-1])) == {"size-mismatch"}


@pytest.mark.parametrize("kept", [len(STORED) - 1, len(STORED) - len(PACKED.frames[-1]), 10])
def test_a_cut_that_the_row_agrees_with_is_found_in_the_frames(kept: int) -> None:
    cut = STORED[:kept]
    row = TRUE._replace(stored_bytes=kept, sha256=hashlib.sha256(cut).hexdigest())
    assert set(found(cut, row)) == {"frame-damaged"}


def test_swapped_frames_are_found_even_under_right_hashes() -> None:
    first, second, *rest = PACKED.frames
    swapped = b"".join([second, first, *rest])
    assert "hash-mismatch" in found(swapped)
    told = found(swapped, TRUE._replace(sha256=hashlib.sha256(swapped).hexdigest()))
    assert set(told) == {"plain-hash-mismatch", "batch-damaged"}


def test_a_frame_that_lies_about_its_size_is_found() -> None:
    raw = PACKED.frames[-1]
    (size,) = struct.unpack_from("<Q", raw, 6)
    for lie in (size - 1, size + 1, 1 << 29):
        lying = b"".join([*PACKED.frames[:-1], raw[:6] + struct.pack("<Q", lie) + raw[14:]])
        row = TRUE._replace(sha256=hashlib.sha256(lying).hexdigest())
        assert set(found(lying, row)) == {"frame-damaged"}


def test_frames_that_hold_more_than_the_row_says_are_not_opened() -> None:
    doubled = STORED * 2
    row = TRUE._replace(stored_bytes=len(doubled), sha256=hashlib.sha256(doubled).hexdigest())
    assert found(doubled, row) == {"frame-damaged": "frames hold more bytes than were written"}


def test_a_batch_that_was_broken_before_it_was_packed_is_found() -> None:
    log = bytearray(dense(0, 3).encode())
    log[70] ^= 1
    broken = Packed(bytes(log), [packed_frame(memoryview(bytes(log)))])
    assert set(found(broken.frames[0], expected("x", broken.frames[0], broken.log))) == {"batch-damaged"}


def test_a_plain_log_under_the_name_of_a_packed_one_is_found() -> None:
    row = expected("x", PACKED.log, PACKED.log)
    assert found(PACKED.log, row) == {"frame-damaged": "no zstd frame begins here"}


def test_a_row_that_names_another_plain_hash_is_found_for_both_kinds() -> None:
    other = hashlib.sha256(b"other").hexdigest()
    assert set(found(STORED, TRUE._replace(plain_sha256=other))) == {"plain-hash-mismatch"}
    plain = expected("x", PACKED.log, PACKED.log)._replace(codec=Codec.NONE)
    assert found(PACKED.log, plain) == {}
    assert set(found(PACKED.log, plain._replace(plain_sha256=other))) == {"plain-hash-mismatch"}
