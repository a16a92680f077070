"""Transaction logs, damaged in every way: all of it is found, and what is told about it is exact."""

import io
import os
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from logkeep.errors import Damaged
from logkeep.formats.zookeeper import txnlog
from logkeep.formats.zookeeper.txnlog import DamageKind, Padding
from tests.support.zookeeper.encoding import LOG_HEADER, log_of, record, set_data

RECORDS = [set_data(zxid, b"data of %d" % zxid) for zxid in range(0x20, 0x26)]
STARTS = [16 + sum(len(each) for each in RECORDS[:index]) for index in range(len(RECORDS) + 1)]
LOG = log_of(RECORDS, padding=200)
USED = STARTS[-1]


def scanned(log: bytes, **options: Any) -> txnlog.ScannedLog:
    return txnlog.scan(io.BytesIO(log), **options)


def with_bytes(log: bytes, at: int, new: bytes) -> bytes:
    return log[:at] + new + log[at + len(new) :]


@pytest.mark.parametrize("padding", [0, 200])
def test_a_flipped_bit_anywhere_in_the_used_bytes_is_found(padding: int) -> None:
    log = bytearray(log_of(RECORDS, padding))
    for bit in range(8 * USED):
        log[bit // 8] ^= 1 << bit % 8
        found = scanned(bytes(log), deep=True)
        log[bit // 8] ^= 1 << bit % 8
        (damage,) = found.damage
        owner = max((index for index, start in enumerate(STARTS) if start <= bit // 8), default=None)
        if owner is None:
            assert (damage.kind, damage.position, damage.resumes_at) == (DamageKind.BAD_HEADER, 0, 16)
        elif owner == len(RECORDS) - 1:
            assert (damage.kind, damage.position, damage.resumes_at) == (DamageKind.TORN, STARTS[owner], None)
        else:
            assert damage.kind in (DamageKind.CHECKSUM, DamageKind.LENGTH, DamageKind.END_MARK)
            assert (damage.position, damage.resumes_at) == (STARTS[owner], STARTS[owner + 1])
            assert damage.resumes_zxid == 0x21 + owner
            assert damage.lost == ((0x20 + owner, 0x20 + owner) if owner else None)
            assert found.records + found.behind[0].records == len(RECORDS) - 1


@pytest.mark.parametrize("padding", [0, 5, 200])
def test_a_log_cut_at_any_byte_keeps_its_whole_records(padding: int) -> None:
    """Records and the header begin or end with zeros: what is cut there cannot be told from padding."""
    for size in range(USED):
        log = LOG[:size] + bytes(padding)
        found = scanned(log)
        whole = sum(start <= size for start in STARTS[1:])
        used = STARTS[whole] if log.startswith(LOG_HEADER) else 0
        assert (found.records, found.size_bytes) == (whole, used)
        if used and not any(log[used:]):
            assert found.damage == ()
        else:
            torn = used or LOG_HEADER.startswith(log)
            assert found.damage[0].kind is (DamageKind.TORN if torn else DamageKind.BAD_HEADER)


def test_kinds_of_damage_are_told_apart() -> None:
    at = STARTS[2]
    cases = {
        DamageKind.CHECKSUM: with_bytes(LOG, at + 30, b"\xff"),
        DamageKind.END_MARK: with_bytes(LOG, STARTS[3] - 1, b"C"),
        DamageKind.LENGTH: with_bytes(LOG, at + 8, struct.pack(">i", 40)),
        DamageKind.GAP: log_of(RECORDS[:2] + RECORDS[3:]),
        DamageKind.ORDER: log_of(RECORDS[:2] + RECORDS[1:]),
        DamageKind.TORN: LOG[: at + 20],
        DamageKind.BAD_HEADER: b"ZKSN" + LOG[4:],
    }
    assert {kind: scanned(log).damage[0].kind for kind, log in cases.items()} == {kind: kind for kind in cases}


@pytest.mark.parametrize("length", [-1, -0x80000000, 1, 31, 0x7FFFFFFF, 5000])
def test_an_impossible_length_is_damage_and_costs_nothing(length: int) -> None:
    log = with_bytes(LOG, STARTS[2] + 8, struct.pack(">i", length))
    tracemalloc.start()
    found = scanned(log, chunk_bytes=4096)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.damage[0].kind, found.damage[0].resumes_at) == (DamageKind.LENGTH, STARTS[3])
    assert peak < 1 << 20
    with pytest.raises(Damaged, match="behind zxid 0x21 is damaged"):
        list(txnlog.bodies(io.BytesIO(log)))


def test_a_length_of_zero_is_the_end_only_with_a_checksum_of_zero(tmp_path: Path) -> None:
    """On a disk too, where it is looked at again."""
    zero = struct.pack(">i", 0)
    path = tmp_path / "log.20"
    path.write_bytes(with_bytes(LOG, STARTS[2] + 8, zero))
    with path.open("rb") as source:
        assert txnlog.scan(source).damage[0].kind is DamageKind.LENGTH
    assert scanned(with_bytes(LOG, STARTS[2] + 8, zero)).damage[0].kind is DamageKind.LENGTH
    assert scanned(with_bytes(LOG, STARTS[5] + 8, zero)).damage[0].kind is DamageKind.TORN
    assert scanned(with_bytes(LOG, USED, struct.pack(">qi", 1, 0))).damage[0].kind is DamageKind.TORN


def test_a_page_of_zeros_between_records_is_no_end() -> None:
    log = log_of([*RECORDS[:2], bytes(4096), *RECORDS[4:]], padding=100)
    for chunk in (100, 1 << 20):
        (damage,) = scanned(log, chunk_bytes=chunk).damage
        assert (damage.kind, damage.after_zxid, damage.resumes_zxid) == (DamageKind.LENGTH, 0x21, 0x24)
        assert damage.lost == (0x22, 0x23)


def test_all_places_are_named_and_everything_good_between_them() -> None:
    log = with_bytes(LOG, STARTS[1] + 20, b"\xff\xff")
    log = with_bytes(log, STARTS[3] + 8, b"\1")
    found = scanned(log, deep=True)
    assert [damage.lost for damage in found.damage] == [(0x21, 0x21), (0x23, 0x23)]
    assert [(piece.start, piece.end) for piece in found.behind] == [(STARTS[2], STARTS[3]), (STARTS[4], USED)]
    assert len(scanned(log).damage) == 1


def test_a_log_inside_a_damaged_record_is_not_mistaken_for_the_log_itself() -> None:
    """Somebody stored a transaction log in a znode."""
    inner = b"".join(set_data(zxid) for zxid in range(0x100, 0x110))
    log = log_of([RECORDS[0], set_data(0x21, inner), *RECORDS[2:]])
    (damage,) = scanned(with_bytes(log, STARTS[1] + 13, b"\xff")).damage
    assert (damage.kind, damage.resumes_zxid) == (DamageKind.CHECKSUM, 0x22)


@pytest.mark.parametrize("version", [0, 1, 3])
def test_files_of_other_versions_are_no_logs(version: int) -> None:
    log = b"ZKLG" + struct.pack(">iq", version, 0) + LOG[16:]
    found = scanned(log)
    assert (found.size_bytes, found.records, found.damage[0].kind) == (0, 0, DamageKind.BAD_HEADER)
    with pytest.raises(Damaged, match="not a transaction log"):
        list(txnlog.bodies(io.BytesIO(log)))


def test_empty_files_and_bare_headers() -> None:
    assert scanned(b"").damage[0].kind is DamageKind.TORN
    assert scanned(LOG_HEADER[:9]).damage[0].kind is DamageKind.TORN
    assert scanned(bytes(100)).damage[0].kind is DamageKind.BAD_HEADER
    bare = scanned(LOG_HEADER)
    assert (bare.size_bytes, bare.records, bare.damage, bare.padding) == (16, 0, (), Padding.NOTHING)
    assert scanned(LOG_HEADER + bytes(1000)).padding is Padding.ZEROS


def test_large_bodies_in_small_chunks() -> None:
    records = [set_data(zxid, os.urandom(900_000)) for zxid in range(1, 4)]
    log = log_of(records, padding=50)
    kept: list[bytes] = []
    found = scanned(log, chunk_bytes=1 << 16, sink=lambda piece: kept.append(bytes(piece)))
    assert (found.records, found.damage, b"".join(kept)) == (3, (), log[:-50])
    assert [len(body) for body in txnlog.bodies(io.BytesIO(log))] == [len(each) - 13 for each in records]
    broken = scanned(with_bytes(log, 16 + len(records[0]) + 700_000, b"??"), chunk_bytes=1 << 16)
    assert broken.damage[0].resumes_at == 16 + len(records[0]) + len(records[1])


def test_a_limit_for_records_makes_longer_ones_damage() -> None:
    log = log_of([set_data(1), set_data(2, b"x" * 10_000), set_data(3)])
    found = scanned(log, largest_record=5000, chunk_bytes=4096)
    assert (found.records, found.damage[0].kind, found.damage[0].resumes_zxid) == (1, DamageKind.LENGTH, 3)


class _Counted(io.FileIO):
    """A file that counts what is read of it."""

    count = 0

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self.count += len(piece or b"")
        return piece or b""


def test_padding_that_was_never_written_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "log.20"
    path.write_bytes(LOG)
    os.truncate(path, 1 << 30)
    with _Counted(path) as file:
        found = txnlog.scan(file)
        assert (found.records, found.damage, found.padding) == (6, (), Padding.ZEROS)
        assert file.count < 1 << 20


def test_records_behind_a_hole_are_found(tmp_path: Path) -> None:
    path = tmp_path / "log.20"
    with path.open("wb") as written:
        written.write(log_of(RECORDS[:2]))
        written.seek((200 << 20) - 5)  # the zeros that a record begins with lie in the hole
        written.write(RECORDS[3])
        written.truncate(400 << 20)
    with _Counted(path) as file:
        (damage,) = txnlog.scan(file).damage
        assert (damage.kind, damage.lost, damage.resumes_at) == (DamageKind.LENGTH, (0x22, 0x22), (200 << 20) - 5)
        assert file.count < 1 << 20


def test_a_hole_within_a_record_belongs_to_it(tmp_path: Path) -> None:
    """Who copies sparse files makes holes of all zeros, also of those that somebody stored."""
    zeros = set_data(0x22, bytes(500_000))
    path = tmp_path / "log.20"
    at = 0
    log = log_of([*RECORDS[:2], zeros, *RECORDS[3:]])
    with path.open("wb") as written:
        for at in range(0, len(log), 4096):
            if any(log[at : at + 4096]):
                written.seek(at)
                written.write(log[at : at + 4096])
    with path.open("rb") as source:
        assert txnlog.scan(source, chunk_bytes=8192).records == 6


def test_a_huge_length_in_a_huge_file_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "log.20"
    path.write_bytes(with_bytes(LOG, STARTS[2] + 8, struct.pack(">i", 1 << 30)))
    os.truncate(path, 2 << 30)
    tracemalloc.start()
    with path.open("rb") as source:
        (damage,) = txnlog.scan(source).damage
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (damage.kind, damage.resumes_at) == (DamageKind.LENGTH, STARTS[3])
    assert peak < 20 << 20


def test_what_is_written_while_the_end_is_looked_at_is_no_damage(tmp_path: Path) -> None:
    """The server appends at the place where the scan saw zeros, and behind it."""
    path = tmp_path / "log.20"
    path.write_bytes(LOG + bytes(100_000))
    more = record(set_data(0x26)[12:-1]) + set_data(0x27, b"y" * 60_000)

    class Written(io.FileIO):
        def readinto(self, buffer: Any, /) -> int:
            if self.tell() > 50_000:
                with path.open("r+b") as server:
                    server.seek(USED)
                    server.write(more)
            return super().readinto(buffer) or 0

    with Written(path) as file:
        found = txnlog.scan(file, chunk_bytes=30_000)
    assert (found.records, found.damage) == (6, ())
    with path.open("rb") as source:
        assert txnlog.scan(source).records == 8


def test_a_file_made_to_be_searched_for_ever_is_given_up() -> None:
    """Each byte of it could begin a record of half the file."""
    head = bytes(8) + struct.pack(">i", 3_000_000)
    hostile = LOG_HEADER + RECORDS[0] + b"\1" + (head + b"B" * 8) * 100_000 + b"B" * 4_000_000
    (damage,) = scanned(hostile).damage
    assert (damage.kind, damage.resumes_at) == (DamageKind.LENGTH, None)
