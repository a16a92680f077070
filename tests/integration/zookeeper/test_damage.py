"""Every kind of damage, in files of real servers: our verdict is right, also where the real server is silently wrong.

Each row says what 3.4.14, 3.6.4 and 3.9.5 themselves do with the same directory. That a server starts is no proof.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.zookeeper.directory_view import directory_view
from logkeep.zookeeper.findings import Class
from logkeep.zookeeper.kept import Member
from logkeep.zookeeper.plan import Refused, ToEnd, ToZxid
from logkeep.zookeeper.prove import Proven, proven_path
from logkeep.zookeeper.survey import LogTimes, survey
from logkeep.zookeeper.verify import Level, Verified, verify
from tests.zookeeper.damage import Server, Written, keep_one_snapshot, patched, verdict, write
from tests.zookeeper.files import logs, snapshots
from tests.zookeeper.judged import differences
from tests.zookeeper.slow_log import SlowRecord, good_records

pytestmark = pytest.mark.xdist_group("zookeeper")
VERSIONS = ("3.4.14", "3.6.4", "3.9.5")
REFUSES, RIGHT, WRONG = Server.REFUSES, Server.RIGHT, Server.WRONG
Lost = tuple[int, int] | None


@dataclass(frozen=True)
class Row:
    name: str
    damage: Callable[[Path], Lost]
    """Damages a directory; first and last transaction that are gone, None where nothing is lost."""
    kinds: frozenset[Class]
    """That are found, besides what any loss brings with it."""
    servers: tuple[Server, Server, Server]
    """What 3.4.14, 3.6.4 and 3.9.5 do."""


def middle(data_dir: Path) -> tuple[Path, list[SlowRecord], SlowRecord]:
    """A log in the middle of those that are needed, its records, and one in the middle of it."""
    keep_one_snapshot(data_dir)
    path = logs(data_dir)[1]
    records = good_records(path.read_bytes())
    return path, records, records[len(records) // 2]


def flip_body(data_dir: Path) -> Lost:
    path, _, record = middle(data_dir)
    with patched(path) as content:
        content[record.position + 30] ^= 1
    return record.zxid, record.zxid


def flip_checksum(data_dir: Path) -> Lost:
    path, _, record = middle(data_dir)
    with patched(path) as content:
        content[record.position + 7] ^= 1
    return record.zxid, record.zxid


def length_of(value: int | None) -> Callable[[Path], Lost]:
    """None: five more than it was."""

    def damage(data_dir: Path) -> Lost:
        path, _, record = middle(data_dir)
        with patched(path) as content:
            written = len(record.body) + 5 if value is None else value
            content[record.position + 8 : record.position + 12] = (written & 0xFFFF_FFFF).to_bytes(4)
        return record.zxid, record.zxid

    return damage


def end_mark(data_dir: Path) -> Lost:
    path, _, record = middle(data_dir)
    with patched(path) as content:
        content[record.end - 1] = ord("C")
    return record.zxid, record.zxid


def zero_page(data_dir: Path) -> Lost:
    path, records, record = middle(data_dir)
    start = (record.position + 4095) // 4096 * 4096
    with patched(path) as content:
        content[start : start + 4096] = bytes(4096)
    gone = [each.zxid for each in records if each.end > start and each.position < start + 4096]
    return gone[0], gone[-1]


def middle_missing(data_dir: Path) -> Lost:
    path, records, _ = middle(data_dir)
    path.unlink()
    return records[0].zxid, records[-1].zxid


def middle_empty(data_dir: Path) -> Lost:
    path, records, _ = middle(data_dir)
    path.write_bytes(b"")
    return records[0].zxid, records[-1].zxid


def middle_magic(data_dir: Path) -> Lost:
    path, _, _ = middle(data_dir)
    with patched(path) as content:
        content[:4] = b"XXXX"
    return None


def first_log_missing(data_dir: Path) -> Lost:
    """The one that holds what comes right behind the snapshot."""
    kept = keep_one_snapshot(data_dir, 1)
    zxid = int(kept.name.split(".")[1], 16)
    for path in logs(data_dir):
        records = good_records(path.read_bytes())
        if records and records[0].zxid <= zxid + 1 <= records[-1].zxid:
            for earlier in logs(data_dir):
                if earlier <= path or int(earlier.name.split(".")[1], 16) <= records[0].zxid:
                    earlier.unlink()
            return zxid + 1, records[-1].zxid
    raise AssertionError("no log holds what comes behind the snapshot")


def last_cut(data_dir: Path) -> Lost:
    keep_one_snapshot(data_dir)
    path = logs(data_dir)[-1]
    record = good_records(path.read_bytes())[-1]
    path.write_bytes(path.read_bytes()[: record.position + 20])
    return None


def last_only_header(data_dir: Path) -> Lost:
    keep_one_snapshot(data_dir)
    last = logs(data_dir)[-1]
    zxid = good_records(last.read_bytes())[-1].zxid
    (last.parent / f"log.{zxid + 1:x}").write_bytes(last.read_bytes()[:16])
    return None


def newest_snapshot_cut(data_dir: Path) -> Lost:
    path = snapshots(data_dir)[-1]
    path.write_bytes(path.read_bytes()[:-40])
    return None


def newest_snapshot_flipped(data_dir: Path) -> Lost:
    with patched(snapshots(data_dir)[-1]) as content:
        content[len(content) // 2] ^= 1
    return None


def stray(data_dir: Path) -> Lost:
    path = logs(data_dir)[-1]
    (path.parent / f"{path.name}.bak").write_bytes(b"not a log")
    return None


LOSS = frozenset({Class.LOST_TRANSACTIONS, Class.END_UNREACHABLE})
DAMAGED = LOSS | {Class.LOG_DAMAGED}
ROWS = (
    Row("a bit of a body", flip_body, DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("a bit of a checksum", flip_checksum, DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("length 0", length_of(0), DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("length + 5", length_of(None), DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("length huge", length_of(0x7FFF_FFF0), DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("length -1", length_of(-1), DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("end mark", end_mark, DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("a page of zeros", zero_page, DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("a log in the middle is gone", middle_missing, LOSS, (WRONG, WRONG, REFUSES)),
    Row("a log in the middle is empty", middle_empty, LOSS | {Class.TORN_LOG}, (REFUSES, REFUSES, REFUSES)),
    Row("a log in the middle has another magic", middle_magic, frozenset({Class.LOG_HEADER}), (REFUSES,) * 3),
    Row("the log behind the snapshot is gone", first_log_missing, LOSS, (WRONG, WRONG, WRONG)),
    Row("the last log is cut", last_cut, frozenset({Class.ACTIVE_TAIL}), (WRONG, WRONG, WRONG)),
    Row("the last log is a header", last_only_header, frozenset({Class.LOG_EMPTY}), (RIGHT, RIGHT, RIGHT)),
    Row("the newest snapshot is cut", newest_snapshot_cut, frozenset({Class.SNAPSHOT_DAMAGED}), (RIGHT,) * 3),
    Row("the newest snapshot has a flip", newest_snapshot_flipped, frozenset({Class.SNAPSHOT_DAMAGED}), (RIGHT,) * 3),
    Row("a stray file", stray, frozenset({Class.STRAY_FILE}), (REFUSES, REFUSES, REFUSES)),
)


@pytest.fixture(scope="module", params=VERSIONS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write(tmp_path_factory.mktemp("damage"), request.param)


def looked_at(written: Written, data_dir: Path) -> tuple[Verified, Proven | Refused]:
    member = Member(name="m", role="standalone", version=written.release.version, data_dir=str(data_dir), zxid=1 << 62)
    view = directory_view(member)
    verified = verify(view, Level.REPLAY, known=view.seen)
    holdings = survey(view)
    return verified, proven_path(view, holdings, ToEnd(), LogTimes(view))


def test_the_directory_is_good_before_it_is_damaged(written: Written, tmp_path: Path) -> None:
    verified, end = looked_at(written, written.data_dir)
    assert isinstance(end, Proven)
    assert not verified.failed
    assert differences(written.truth, end.replayed.tree) == []
    assert len(logs(written.data_dir)) >= 3
    assert len(snapshots(written.data_dir)) >= 3


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_a_row_of_damage(row: Row, written: Written, tmp_path: Path) -> None:
    data_dir = written.copied(tmp_path / "data")
    lost = row.damage(data_dir)
    verified, end = looked_at(written, data_dir)
    found = {each.kind for each in verified.seen} - {Class.SNAPSHOT_UNBOUNDED, Class.WINDOW_OPEN}
    assert found >= row.kinds
    assert verified.lost == (() if lost is None else (lost,))
    if lost is not None:
        assert isinstance(end, Refused)
        assert verified.failed
        assert any(each.last.zxid == lost[0] - 1 for each in end.reachable)
    elif row.kinds == {Class.ACTIVE_TAIL}:
        assert isinstance(end, Proven)
        assert end.path.until == written.records()[-1].zxid - 1
    elif row.kinds != {Class.LOG_HEADER}:
        assert isinstance(end, Proven)
        assert differences(written.truth, end.replayed.tree) == []
    does = verdict(data_dir, written.truth, written.release, tmp_path / "server")
    assert does is row.servers[VERSIONS.index(written.release.version)]


def test_what_can_still_be_reached_is_exact(written: Written, tmp_path: Path) -> None:
    """Up to the loss the replay is what the server had then, as the undamaged logs tell."""
    data_dir = written.copied(tmp_path / "data")
    lost = flip_body(data_dir)
    assert lost is not None
    trees = []
    for directory in (data_dir, written.data_dir):
        view = directory_view(Member(name="m", role="standalone", data_dir=str(directory)))
        found = proven_path(view, survey(view), ToZxid(lost[0] - 1), LogTimes(view))
        assert isinstance(found, Proven)
        trees.append(found.replayed.tree)
    assert trees[0].digest == trees[1].digest
    assert trees[0].nodes.keys() == trees[1].nodes.keys()
