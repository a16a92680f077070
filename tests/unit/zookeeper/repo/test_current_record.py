"""Records read through the rows that serve them today, made up row by row."""

import hashlib

import msgspec
import pytest

from logkeep.errors import Damaged
from logkeep.model.segments import Collection, Segment
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, LogFileEnding
from logkeep.zookeeper.repo.current_record import adler_digest, last_adler_in, tokens_of, with_repairs
from logkeep.zookeeper.repo.record import EnsembleRecord, log_of

A, B, C, D = (letter * 16 for letter in "abcd")
EPOCH = 1 << 32


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def row(
    token: str, first: int, last: int, collection: Collection = Collection.TXNLOGS, *, held: str = "", digest: str = ""
) -> Segment:
    return Segment(
        log=log_of(collection, "zk1", "1"), start=first, end=last + 1, first=first, token=token, records=last - first,
        stored_bytes=1, plain_bytes=1, base_time_ms=0, max_time_ms=last, sha256=sha(held), plain_sha256=sha(held),
        digest=digest,
    )  # fmt: skip


def log(token: str, first: int, last: int, borders: tuple[tuple[int, int], ...] = ()) -> ArchivedLog:
    return ArchivedLog(
        token=token, member="zk1", history="1", name=f"log.{first:x}", first=first, last=last, last_adler=77,
        max_time_ms=last, borders=borders,
    )  # fmt: skip


def snapshot(token: str, zxid: int, held: str) -> ArchivedSnapshot:
    return ArchivedSnapshot(
        token=token, member="zk1", history="1", name=f"snapshot.{zxid:x}", zxid=zxid, size_bytes=1, sha256=sha(held)
    )


def record(*logs: ArchivedLog, snapshots: tuple[ArchivedSnapshot, ...] = ()) -> EnsembleRecord:
    return EnsembleRecord(
        repository="0" * 32, source="zk", id=1, history="1", backup_zxid=9, members=(), snapshots=snapshots, logs=logs
    )


def test_what_was_not_replaced_is_as_it_was() -> None:
    told = record(log(A, 1, 8))
    assert with_repairs(told, [row(A, 1, 8), row(B, 9, 12)]) is told


def test_a_whole_log_in_another_object_is_the_same_log() -> None:
    told = record(log(A, 1, 8, ((0, 1),)), log(B, 9, 12))
    found = with_repairs(told, [row(C, 1, 8), row(B, 9, 12)])
    assert [(one.token, one.first, one.last, one.last_adler, one.ending) for one in found.logs] == [
        (C, 1, 8, 77, LogFileEnding.CLEAN),
        (B, 9, 12, 77, LogFileEnding.CLEAN),
    ]
    assert found.logs[0].borders == ((0, 1),)
    assert tokens_of(told) - tokens_of(found) == {A}


def test_what_is_left_of_a_log_says_where_it_ends() -> None:
    """The border belongs to the run that begins behind it."""
    told = record(log(A, 5, EPOCH + 9, ((8, EPOCH + 1),)))
    left = [row(B, 5, 6, digest="adler32:0000002a"), row(C, EPOCH + 1, EPOCH + 9)]
    found = with_repairs(told, left)
    assert [(one.first, one.last, one.last_adler, one.ending, one.borders) for one in found.logs] == [
        (5, 6, 42, LogFileEnding.DAMAGED, ()),
        (EPOCH + 1, EPOCH + 9, 77, LogFileEnding.CLEAN, ((8, EPOCH + 1),)),
    ]
    assert {one.name for one in found.logs} == {"log.5"}
    with pytest.raises(Damaged, match="no checksum of its last record"):
        with_repairs(told, [row(B, 5, 6)])


def test_a_log_of_which_nothing_is_left_is_none_and_a_merged_one_is_not_meant() -> None:
    told = record(log(A, 5, 6), log(B, 9, 10))
    nothing = msgspec.structs.replace(row(C, 4, 7), has_object=False)
    assert with_repairs(told, [nothing, row(D, 8, 12)]).logs == (log(B, 9, 10),)


def test_a_snapshot_is_only_the_very_same_file() -> None:
    told = record(log(A, 1, 8), snapshots=(snapshot(B, 2, "file"),))
    other = row(C, 2, 2, Collection.SNAPSHOTS, held="written anew")
    same = row(D, 2, 2, Collection.SNAPSHOTS, held="file")
    assert with_repairs(told, [row(A, 1, 8), other, same]).snapshots[0].token == D
    assert with_repairs(told, [row(A, 1, 8), other]).snapshots == ()


def test_rows_tell_checksums_as_they_always_will() -> None:
    assert adler_digest(0xBEEF) == "adler32:0000beef"
    assert last_adler_in(row(A, 1, 2, digest=adler_digest(0xFFFF_FFFF))) == 0xFFFF_FFFF
    assert last_adler_in(row(A, 1, 2)) is None
