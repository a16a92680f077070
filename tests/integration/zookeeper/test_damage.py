"""Every kind of damage, in files of real servers: our verdict is right, also where the real server is silently wrong.

Each row says what 3.4.14, 3.6.4 and 3.9.5 themselves do with the same directory. That a server starts is no proof.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from logkeep.embedded.zookeeper import ZooKeeperRelease
from logkeep.formats.zookeeper.snapshot import SnapshotReader
from logkeep.model.findings import Severity
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.repair.plan import Repair
from logkeep.zookeeper.repair.run import repair
from logkeep.zookeeper.server.client import Credential, ZooKeeperSession, session
from logkeep.zookeeper.timeline.plan import RestoreRefused, ToEnd, ToZxid
from logkeep.zookeeper.timeline.proof import ProvenPath, proven_path
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from logkeep.zookeeper.verify.directory_view import directory_view
from logkeep.zookeeper.verify.run import Level, VerifiedFiles, verify
from tests.support.zookeeper.damaged_directories import (
    PASSWORD,
    Server,
    Written,
    keep_one_snapshot,
    patched,
    server,
    verdict,
    write,
    write_epochs,
)
from tests.support.zookeeper.handmade_history import MemorySink, in_memory
from tests.support.zookeeper.server_files import logs, snapshots
from tests.support.zookeeper.slow_log import SlowRecord, good_records
from tests.support.zookeeper.tree_judge import differences

pytestmark = pytest.mark.xdist_group("zookeeper-damage")
VERSIONS = ("3.4.14", "3.6.4", "3.9.5")
REFUSES, RIGHT, WRONG = Server.REFUSES, Server.RIGHT, Server.WRONG
Lost = tuple[int, int] | None
PAGE = 4096
TAIL = 30
"""The number of records that are cut off: the very last ones end sessions, and change no node."""


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


def length_of(value: int) -> Callable[[Path], Lost]:
    return _length(lambda _: value)


def length_by(more: int) -> Callable[[Path], Lost]:
    return _length(lambda size: size + more)


def _length(written_for: Callable[[int], int]) -> Callable[[Path], Lost]:
    """`written_for`: what is written for a body of so many bytes."""

    def damage(data_dir: Path) -> Lost:
        path, records, record = middle(data_dir)
        with patched(path) as content:
            # where a server then looks for the end mark there must be none by chance
            record = next(r for r in records if r.zxid >= record.zxid and not _ends_by_chance(content, r, written_for))
            written = written_for(len(record.body))
            content[record.position + 8 : record.position + 12] = (written & 0xFFFF_FFFF).to_bytes(4)
        return record.zxid, record.zxid

    return damage


def _ends_by_chance(content: bytearray, record: SlowRecord, written_for: Callable[[int], int]) -> bool:
    return content[record.position + 12 + written_for(len(record.body)) :][:1] == b"B"


def end_mark(data_dir: Path) -> Lost:
    path, _, record = middle(data_dir)
    with patched(path) as content:
        content[record.end - 1] = ord("C")
    return record.zxid, record.zxid


def zero_page(data_dir: Path) -> Lost:
    """One that holds the end mark of its first record: inside a large one it is only a wrong checksum."""
    path, records, record = middle(data_dir)
    pages = (_over(records, start) for start in range(-(-record.position // PAGE) * PAGE, records[-1].position, PAGE))
    start, gone = next((start, gone) for start, gone in pages if gone[0].end <= start + PAGE)
    with patched(path) as content:
        content[start : start + PAGE] = bytes(PAGE)
    return gone[0].zxid, gone[-1].zxid


def _over(records: list[SlowRecord], start: int) -> tuple[int, list[SlowRecord]]:
    """Those of which something lies in a page."""
    return start, [each for each in records if each.end > start and each.position < start + PAGE]


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
    """The one that holds what comes right behind the snapshot, and those before it; also the one behind it, for the
    first may hold nothing but what the fuzzy snapshot has already."""
    kept = keep_one_snapshot(data_dir, 1)
    zxid = int(kept.name.split(".")[1], 16)
    for path in logs(data_dir):
        records = good_records(path.read_bytes())
        if records and records[0].zxid <= zxid + 1 <= records[-1].zxid:
            number = logs(data_dir).index(path)
            behind = good_records(logs(data_dir)[number + 1].read_bytes())
            for gone in logs(data_dir)[: number + 2]:
                gone.unlink()
            return zxid + 1, behind[-1].zxid
    raise AssertionError("no log holds what comes behind the snapshot")


def last_cut(data_dir: Path) -> Lost:
    """Inside the record that is `TAIL` from the end; a log that the server began behind it goes."""
    keep_one_snapshot(data_dir)
    left = TAIL
    for path in reversed(logs(data_dir)):
        records = good_records(path.read_bytes())
        if len(records) >= left:
            path.write_bytes(path.read_bytes()[: records[-left].position + 20])
            return None
        left -= len(records)
        path.unlink()
    raise AssertionError(f"there are no {TAIL} records")


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


STAT_BYTES, OWNER_AT = 68, 9
"""Behind the data of a node; from its end back to the last byte of its owner."""


def newest_snapshot_flipped(back: int) -> Callable[[Path], Lost]:
    """One bit, so many bytes before the end of a node that has data and no owner, and that no later record names: a
    server that lost it would be right if a client deleted it later."""

    def damage(data_dir: Path) -> Lost:
        path = snapshots(data_dir)[-1]
        later = _bodies_since(data_dir, int(path.name.split(".")[1], 16))
        with path.open("rb") as file, patched(path) as content:
            reader = SnapshotReader(file)
            reader.sessions(), reader.acls()
            ends = [reader.position for row in reader.nodes() if row.data and row.owner == 0 and row.path not in later]
            content[ends[len(ends) // 2] - back] ^= 1
        return None

    return damage


def _bodies_since(data_dir: Path, zxid: int) -> bytes:
    every = (record for path in logs(data_dir) for record in good_records(path.read_bytes()))
    return b"".join(record.body for record in every if record.zxid >= zxid)


def last_empty(data_dir: Path) -> Lost:
    keep_one_snapshot(data_dir)
    last = logs(data_dir)[-1]
    zxid = good_records(last.read_bytes())[-1].zxid
    (last.parent / f"log.{zxid + 1:x}").write_bytes(b"")
    return None


def only_snapshot_bad(data_dir: Path) -> Lost:
    """The logs go back to the beginning, so nothing is lost."""
    path = keep_one_snapshot(data_dir)
    path.write_bytes(path.read_bytes()[:-40])
    return None


def no_snapshot(data_dir: Path) -> Lost:
    keep_one_snapshot(data_dir).unlink()
    return None


def stray(data_dir: Path) -> Lost:
    """With a number of its own: which of two files of the same number a server reads is chance."""
    path, _, record = middle(data_dir)
    (path.parent / f"log.{record.zxid:x}.bak").write_bytes(b"not a log" * 10)
    return None


LOSS = frozenset({Class.LOST_TRANSACTIONS, Class.END_UNREACHABLE})
GAP = frozenset({Class.LOST_TRANSACTIONS})
DAMAGED = LOSS | {Class.LOG_DAMAGED}
HEADER, TORN, EMPTY = frozenset({Class.LOG_HEADER}), frozenset({Class.ACTIVE_TAIL}), frozenset({Class.LOG_EMPTY})
SNAPSHOT, STRAY = frozenset({Class.SNAPSHOT_DAMAGED}), frozenset({Class.STRAY_FILE})
ROWS = (
    Row("a bit of a body", flip_body, DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("a bit of a checksum", flip_checksum, DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("length 0", length_of(0), DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("length + 5", length_by(5), DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("length - 5", length_by(-5), DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("length huge", length_of(0x7FFF_FFF0), DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("length -1", length_of(-1), DAMAGED, (REFUSES, REFUSES, REFUSES)),
    Row("end mark", end_mark, DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("a page of zeros", zero_page, DAMAGED, (WRONG, WRONG, REFUSES)),
    Row("a log in the middle is gone", middle_missing, LOSS, (WRONG, WRONG, REFUSES)),
    Row("a log in the middle is empty", middle_empty, LOSS | {Class.TORN_LOG}, (REFUSES, REFUSES, REFUSES)),
    Row("a log in the middle has another magic", middle_magic, HEADER, (REFUSES, REFUSES, REFUSES)),
    Row("the log behind the snapshot is gone", first_log_missing, GAP, (WRONG, WRONG, WRONG)),
    Row("the last log is cut", last_cut, TORN, (WRONG, WRONG, WRONG)),
    Row("the last log is a header", last_only_header, EMPTY, (RIGHT, RIGHT, RIGHT)),
    Row("the last log is empty", last_empty, TORN, (REFUSES, REFUSES, RIGHT)),
    Row("the newest snapshot is cut", newest_snapshot_cut, SNAPSHOT, (RIGHT, RIGHT, RIGHT)),
    Row("the newest snapshot has other data", newest_snapshot_flipped(STAT_BYTES + 1), SNAPSHOT, (RIGHT, RIGHT, RIGHT)),
    Row("the newest snapshot has another owner", newest_snapshot_flipped(OWNER_AT), SNAPSHOT, (WRONG, WRONG, WRONG)),
    Row("the only snapshot is cut", only_snapshot_bad, SNAPSHOT, (RIGHT, REFUSES, REFUSES)),
    Row("logs and no snapshot", no_snapshot, frozenset(), (RIGHT, REFUSES, REFUSES)),
    Row("a stray file", stray, STRAY, (RIGHT, REFUSES, REFUSES)),
)


OLD = {
    "length 0",
    "a log in the middle is gone",
    "the last log is empty",
    "the only snapshot is cut",
    "a stray file",
}
"""Where servers before 3.9 do something else: tried every day with 3.4.14; all others in the long run."""
SOAK = pytest.mark.soak


def cases() -> Iterator[Any]:
    for version in reversed(VERSIONS):  # other tests begin with the newest one, too: it is written once for all
        for row in ROWS:
            everyday = version == "3.9.5" or (version == "3.4.14" and row.name in OLD)
            marks = () if everyday else (SOAK,)
            yield pytest.param(version, row, id=f"{version}-{row.name.replace(' ', '-')}", marks=marks)


@pytest.fixture(scope="module", params=[pytest.param("3.4.14", marks=SOAK), pytest.param("3.6.4", marks=SOAK), "3.9.5"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write(tmp_path_factory.mktemp("damage"), request.param)


def looked_at(
    written: Written, data_dir: Path, role: str = "standalone"
) -> tuple[VerifiedFiles, ProvenPath | RestoreRefused]:
    member = Member(name="m", role=role, version=written.release.version, data_dir=str(data_dir), zxid=1 << 62)
    view = directory_view(member)
    verified = verify(view, Level.REPLAY, known=view.seen)
    holdings = survey(view)
    return verified, proven_path(view, holdings, ToEnd(), LogTimes(view))


def as_it_was(written: Written, end: ProvenPath) -> bool:
    """Whoever looked closed a session after that: the last zxid is a later one, the tree is not."""
    tree = end.replayed.tree
    assert tree.zxid == written.truth.zxid + 1
    return differences(replace(written.truth, zxid=tree.zxid), tree) == []


def test_the_directory_is_good_before_it_is_damaged(written: Written, tmp_path: Path) -> None:
    verified, end = looked_at(written, written.data_dir)
    assert isinstance(end, ProvenPath)
    assert not verified.failed
    assert as_it_was(written, end)
    assert len(logs(written.data_dir)) >= 3
    assert len(snapshots(written.data_dir)) >= 3


@pytest.mark.parametrize(("written", "row"), list(cases()), indirect=["written"])
def test_a_row_of_damage(row: Row, written: Written, tmp_path: Path) -> None:
    data_dir = written.copied(tmp_path / "data")
    lost = row.damage(data_dir)
    verified, end = looked_at(written, data_dir)
    found = {each.kind for each in verified.seen} - {Class.SNAPSHOT_UNBOUNDED, Class.WINDOW_OPEN}
    assert found >= row.kinds
    assert verified.lost == (() if lost is None else (lost,))
    if lost is not None:
        assert isinstance(end, RestoreRefused)
        assert verified.failed
        assert [each.last.zxid for each in end.reachable] in ([lost[0] - 1], [])
    elif row.damage is last_cut:
        assert isinstance(end, ProvenPath)
        assert end.path.until == written.records()[-TAIL].zxid - 1
    else:
        assert isinstance(end, ProvenPath)
        assert as_it_was(written, end)
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
        assert isinstance(found, ProvenPath)
        trees.append(found.replayed.tree)
    assert trees[0].digest == trees[1].digest
    assert trees[0].nodes.keys() == trees[1].nodes.keys()


@pytest.mark.parametrize("written", ["3.9.5"], indirect=True)
def test_a_server_that_trusts_logs_alone_has_all(written: Written, tmp_path: Path) -> None:
    """What the row says that it refuses otherwise."""
    data_dir = written.copied(tmp_path / "data")
    no_snapshot(data_dir)
    trusting = {"snapshot.trust.empty": "true"}
    assert verdict(data_dir, written.truth, written.release, tmp_path / "server", **trusting) is RIGHT


def test_a_snapshot_without_logs_is_a_moment_or_nothing(written: Written, tmp_path: Path) -> None:
    """A server starts on it without a word, with whatever it happens to hold. It may be exact by chance."""
    data_dir = written.copied(tmp_path / "data")
    kept = keep_one_snapshot(data_dir, 1)
    for path in logs(data_dir):
        path.unlink()
    verified, end = looked_at(written, data_dir)
    if isinstance(end, ProvenPath):
        assert end.path.until == int(kept.name.split(".")[1], 16)
        assert end.path.base.settled == end.path.until
    else:
        assert verified.failed
    assert verdict(data_dir, written.truth, written.release, tmp_path / "server") is WRONG


@pytest.fixture(scope="module", params=[pytest.param("3.6.4", marks=SOAK), "3.9.5"])
def epochs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_epochs(tmp_path_factory.mktemp("epochs"), request.param)


def test_a_loss_at_the_end_of_an_epoch_is_found_by_digests_alone(epochs: Written, tmp_path: Path) -> None:
    """No number tells it, and every server starts on it: also 3.4.14 on the same files."""
    data_dir = epochs.copied(tmp_path / "data")
    keep_one_snapshot(data_dir)
    _, end = looked_at(epochs, data_dir, role="leader")
    assert isinstance(end, ProvenPath)
    assert len(end.path.borders) == 2  # the beginning, and from one epoch to the next
    of_first = [path for path in logs(data_dir) if int(path.name.split(".")[1], 16) >> 32 == 1]
    while len(records := good_records(of_first[-1].read_bytes())) < 2 * TAIL:
        of_first.pop().unlink()  # it was begun shortly before the end of the epoch: lost too
    first = of_first[-1]
    first.write_bytes(first.read_bytes()[: records[-TAIL].position])
    verified, end = looked_at(epochs, data_dir, role="leader")
    assert isinstance(end, RestoreRefused)
    assert "digest" in end.what
    assert Class.DIGEST_MISMATCH in {each.kind for each in verified.seen}
    assert not verified.restorable
    (reachable,) = end.reachable  # refusals at the end of what is left have no digest, and are not counted in
    assert records[-2 * TAIL].zxid < reachable.last.zxid < records[-TAIL].zxid
    older = Written(data_dir, ZooKeeperRelease("3.4.14"), epochs.truth)
    for release in (epochs.release, older.release):
        copied = older.copied(tmp_path / release.version)
        assert verdict(copied, epochs.truth, release, tmp_path / f"server-{release.version}") is Server.WRONG


def test_a_loss_at_the_beginning_of_an_epoch_is_found_by_its_numbers(epochs: Written, tmp_path: Path) -> None:
    """Servers compare numbers within an epoch alone, and start on it."""
    data_dir = epochs.copied(tmp_path / "data")
    keep_one_snapshot(data_dir)
    path = next(path for path in logs(data_dir) if int(path.name.split(".")[1], 16) >> 32 == 2)
    content = path.read_bytes()
    kept = good_records(content)[TAIL]
    path.unlink()
    (path.parent / f"log.{kept.zxid:x}").write_bytes(content[:16] + content[kept.position :])
    verified, end = looked_at(epochs, data_dir, role="leader")
    assert isinstance(end, RestoreRefused)
    assert verified.failed
    assert Class.LOST_TRANSACTIONS in {each.kind for each in verified.seen}
    (reachable,) = end.reachable
    assert reachable.last.zxid == max(each.zxid for each in epochs.records() if each.zxid >> 32 == 1)
    assert verdict(data_dir, epochs.truth, epochs.release, tmp_path / "server") is WRONG


def test_a_real_server_agrees_with_the_replay(written: Written, tmp_path: Path) -> None:
    view = directory_view(
        Member(name="m", role="standalone", version=written.release.version, data_dir=str(written.data_dir))
    )

    @contextmanager
    def boot(data_dir: Path) -> Iterator[ZooKeeperSession]:
        may_all = Credential("digest", f"super:{PASSWORD}")
        with (
            server(tmp_path / "server", written.release, data_dir) as running,
            session(running.client, 30, [may_all]) as client,
        ):
            yield client

    good = verify(view, Level.BOOT, known=view.seen, boot=boot, scratch=tmp_path / "scratch")
    assert not good.failed

    @contextmanager
    def boot_another(data_dir: Path) -> Iterator[ZooKeeperSession]:
        shutil.rmtree(data_dir / "version-2")  # as a server that silently starts without what it was given
        with boot(data_dir) as client:
            yield client

    other = verify(view, Level.BOOT, known=view.seen, boot=boot_another, scratch=tmp_path / "other")
    assert {each.kind for each in other.seen if each.severity is Severity.DAMAGE} == {Class.BOOT_DIFFERS}


def test_records_of_a_real_server_are_spliced_from_another_copy(written: Written) -> None:
    whole = directory_view(Member(name="m", role="standalone", data_dir=str(written.data_dir)))
    view = in_memory(whole)
    log = view.logs[1]
    content = bytearray(view.objects[log])
    content[len(content) // 2] ^= 1
    view.objects[log] = bytes(content)
    alone = repair(view, MemorySink(view), level=Level.REPLAY)
    assert [each.kind for each in alone.repairs] == [Repair.SPLIT]
    assert len(alone.lost) == 1
    done = repair(view, MemorySink(view), earlier=[whole], level=Level.REPLAY)
    assert [each.kind for each in done.repairs] == [Repair.SPLICED]
    assert not done.verified.failed
    assert done.verified.restorable
