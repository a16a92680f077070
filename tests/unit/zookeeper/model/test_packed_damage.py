"""A wrong bit in a packed log of a repository: verify names it, and nobody loses more than what it hit."""

import random
import re
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.transactions import SetData, Transaction
from logkeep.formats.zstd_frames import MAGIC
from logkeep.model.segments import Codec
from logkeep.model.work import Engine
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.chain.commits import SourceRef
from logkeep.zookeeper.history.log_task import Depth, WantedEvents
from logkeep.zookeeper.history.run import history
from logkeep.zookeeper.history.selection import select_logs
from logkeep.zookeeper.history.sql_rows import readable_units, rows
from logkeep.zookeeper.repo.view import ArchiveView
from tests.support.zookeeper.encoding import LOG_HEADER, body, record
from tests.support.zookeeper.handmade_directories import MIB, MadeServer
from tests.support.zookeeper.merged_backups import optimize
from tests.support.zookeeper.repaired_backups import beside, damage, ids, repaired, verified, viewed
from tests.support.zookeeper.repositories import archived, bytes_of, new_place, newest, zxids

EVERYTHING = WantedEvents(b"/", Depth.EVERYTHING, 1 << 30)
CHANCE = random.Random(11)
MANY = 3000


def packed_badly(zxid: int) -> bytes:
    """A record of two kilobytes that shrink by half."""
    data = CHANCE.randbytes(1000).hex().encode()
    return record(body(Transaction(7, 1, zxid, 1_700_000_000_000, 5, SetData(b"/zookeeper", data, 1), None)))


RECORDS = [packed_badly(zxid) for zxid in range(1, MANY + 1)]


class Packed:
    """A server with a log of six megabytes, and a repository."""

    def __init__(self, root: Path, codec: Codec) -> None:
        self.server, self.place, self.codec = MadeServer(root, zxid=0), new_place(), codec
        self.server.snapshot(0)

    def backup(self, last: int) -> ArchiveView:
        content = LOG_HEADER + b"".join(RECORDS[:last]) + bytes(MIB)
        (self.server.log_dir / "log.1").write_bytes(content)
        self.server.zxid = last
        archived(self.place, self.server, codec=self.codec)
        return newest(self.place)


def engine(_size_bytes: int = 0) -> Engine:
    return InlineEngine()


def half_way(place: SourceRef, view: ArchiveView) -> None:
    """So that it cannot be unpacked: in the midst of the one stream of gzip, and at the head of the second frame."""
    stored, log = place.store.get(view.object_name(view.logs[0]), 1 << 30), view.logs[0]
    at = stored.index(MAGIC, 1) if stored.startswith(MAGIC) else len(stored) // 2
    damage(place, view, log, *range(at, at + 40))


@pytest.fixture(params=[Codec.GZIP, Codec.ZSTD])
def packed(request: pytest.FixtureRequest, tmp_path: Path) -> Packed:
    return Packed(tmp_path / "server", request.param)


def found_by_history(view: ArchiveView) -> tuple[set[int], bool]:
    """What it tells of, and whether it names what it cannot tell."""
    told = history(view, EVERYTHING, engine)
    zxids_told = {event.zxid for event in told.events}
    holes = readable_units(view, InlineEngine(), select_logs(view, lambda _: InlineEngine())).missing
    named = {zxid for hole in holes for zxid in range(hole.first, hole.last + 1)}
    last = max(log.last for log in view.logs)
    assert zxids_told | named == set(range(1, last + 1))
    assert not zxids_told & named
    return zxids_told, bool(told.findings)


def test_what_is_around_the_damage_is_found(packed: Packed) -> None:
    view = packed.backup(MANY)
    half_way(packed.place, view)
    told = verified(packed.place, ids(packed.place)[0])
    assert told.document.verdict == DAMAGED
    assert {"log-damaged", "lost-transactions"} <= {finding.code for finding in told.findings}
    found, named = found_by_history(newest(packed.place))
    assert named
    assert set(range(1, 1000)) <= found
    if packed.codec is Codec.ZSTD:
        assert set(range(2200, MANY + 1)) <= found, "the last frame of three is whole"
    now = newest(packed.place)
    units = readable_units(now, InlineEngine(), select_logs(now, lambda _: InlineEngine())).units
    assert {zxid for unit in units for batch in rows(unit) for zxid in batch["zxid"].to_pylist()} == found


def test_what_is_found_is_kept_by_a_repair(packed: Packed) -> None:
    view = packed.backup(MANY)
    found_before = set(range(1, MANY + 1))
    half_way(packed.place, view)
    found, _ = found_by_history(newest(packed.place))
    assert len(repaired(packed.place, ids(packed.place)[0], accept_loss=True).repaired) == 1
    kept = {zxid for first, last in zxids(newest(packed.place)) for zxid in range(first, last + 1)}
    assert kept == found < found_before
    for content in (each for key, each in bytes_of(newest(packed.place)).items() if key[2] == "log.1"):
        assert content[len(LOG_HEADER) :] in b"".join(RECORDS)


def test_it_is_mended_by_who_has_the_rest(packed: Packed) -> None:
    view = packed.backup(MANY)
    expected = bytes_of(view)
    half_way(packed.place, view)
    (mend,) = repaired(packed.place, ids(packed.place)[0], beside(packed.server)).repaired.values()
    assert "spliced" in mend.provenance
    assert "0x1 to" not in mend.provenance, "what comes before the damage is its own"
    assert bytes_of(newest(packed.place)) == expected
    assert verified(packed.place, ids(packed.place)[0]).document.verdict == GOOD


def test_a_donor_that_is_damaged_itself_gives_what_is_good_in_it(packed: Packed) -> None:
    codec, packed.codec = packed.codec, Codec.NONE
    expected = bytes_of(packed.backup(MANY))
    archived(packed.place, packed.server, codec=codec, new_history=True)
    first, second = (viewed(packed.place, one) for one in ids(packed.place))
    half_way(packed.place, second)
    behind = (2900,) if codec is Codec.ZSTD else ()
    damage(packed.place, first, first.logs[0], *(zxid * len(RECORDS[0]) for zxid in (500, *behind)))
    assert len(repaired(packed.place, ids(packed.place)[0]).repaired) == 1
    assert bytes_of(viewed(packed.place, ids(packed.place)[0])) == expected


def test_a_wrong_checksum_of_the_packing_alone_loses_nothing(tmp_path: Path) -> None:
    packed = Packed(tmp_path / "server", Codec.GZIP)
    view = packed.backup(100)
    expected = bytes_of(view)
    damage(packed.place, view, view.logs[0], -6)
    assert verified(packed.place, ids(packed.place)[0]).document.verdict == DAMAGED
    assert found_by_history(newest(packed.place)) == (set(range(1, 101)), False)
    assert len(repaired(packed.place, ids(packed.place)[0]).repaired) == 1
    assert bytes_of(newest(packed.place)) == expected


@pytest.fixture
def merged(packed: Packed) -> Packed:
    """Three backups in one object, which is damaged in the part of the second."""
    for last in (900, 1900, MANY):
        packed.backup(last)
    optimize(packed.place, target_bytes=1 << 30)
    assert zxids(newest(packed.place)) == [(1, MANY)]
    half_way(packed.place, newest(packed.place))
    return packed


def test_a_backup_whose_part_of_a_merged_object_is_whole_has_lost_nothing(merged: Packed) -> None:
    """The object is damaged for all that it serves, as with any object; what this one has of it is told to be whole."""
    told = [verified(merged.place, one) for one in ids(merged.place)]
    assert [each.document.verdict for each in told] == [DAMAGED] * 3
    assert [finding.code for finding in told[0].findings] == ["seal-broken"]
    assert "its content is undamaged" in told[0].findings[0].what
    assert all("lost-transactions" in {finding.code for finding in each.findings} for each in told[1:])
    assert found_by_history(viewed(merged.place, ids(merged.place)[0])) == (set(range(1, 901)), False)


def test_of_a_part_of_a_merged_object_nothing_is_told_that_lies_behind_it(merged: Packed) -> None:
    found, _ = found_by_history(viewed(merged.place, ids(merged.place)[1]))
    assert set(range(1, 1000)) <= found <= set(range(1, 1901))
    told = verified(merged.place, ids(merged.place)[1]).findings
    lost = [finding for finding in told if finding.code == "lost-transactions"]
    assert lost
    assert all(int(word, 16) <= 1900 for one in lost for word in re.findall(r"0x([0-9a-f]+)", one.what))
