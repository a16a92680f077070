"""Small pieces of transaction logs become few objects, and every backup stays what it was."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from msgspec.structs import replace

from logkeep.engine.inline import InlineEngine
from logkeep.errors import Damaged
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository import follow
from logkeep.repository.backups.verdicts import GOOD
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.owner import this_process
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.garbage import collect
from logkeep.repository.upkeep.optimize import MergeUnit
from logkeep.repository.upkeep.prune import delete
from logkeep.repository.verify.run import Verifier
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions
from logkeep.zookeeper.follow import FollowedEnsemble
from logkeep.zookeeper.repo.merge import merge_with
from logkeep.zookeeper.repo.pieces import find_pieces
from logkeep.zookeeper.repo.record import log_record
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.repo.verify import DeepVerification
from logkeep.zookeeper.repo.view import view_of
from logkeep.zookeeper.verify.run import Level
from tests.crash.points import AT_ONCE
from tests.support.zookeeper.handmade_directories import MIB, MadeServer, rounds, txn
from tests.support.zookeeper.merged_backups import Growing, everything, log_objects, optimize
from tests.support.zookeeper.repositories import archived, bytes_of, new_local_place, new_place, newest, zxids


def verified(place: SourceRef, level: Level = Level.REPLAY) -> list[str]:
    """The verdicts on all backups."""
    found = []
    for entry in read_chain(place).completed:
        verifier = Verifier(
            place, InlineEngine(), this_process("verify"), utc_now, random_token, deeper=DeepVerification(entry, level)
        )
        found.append(verifier.verify(BackupId(entry.id), level).document.verdict)
    return found


def sweep(place: SourceRef) -> None:
    with writing(place, "gc", utc_now, random_token) as session:
        collect(session, AT_ONCE)


@pytest.mark.parametrize("codec", list(Codec))
def test_many_backups_become_few_objects_and_stay_what_they_were(tmp_path: Path, codec: Codec) -> None:
    place = new_place()
    server = MadeServer(tmp_path / "server", zxid=1)
    server.snapshot(0)
    log = server.log([1])
    archived(place, server, codec=codec)
    for zxid in range(2, 8):
        server.add(log, [zxid])
        server.zxid = zxid
        archived(place, server, codec=codec)
    before = everything(place)
    exact = {entry.id: bytes_of(view_of(place, entry)) for entry in read_chain(place).completed}
    done = optimize(place)
    assert (done.objects_before, done.objects_after, done.findings) == (7, 1, ())
    sweep(place)
    assert len(log_objects(place)) == 1
    assert everything(place) == before
    for entry in read_chain(place).completed[:-1]:
        assert bytes_of(view_of(place, entry)) == exact[entry.id], "one that ends among the pieces has them as before"
    assert zxids(newest(place)) == [(1, 7)]
    assert verified(place) == [GOOD] * 7


def test_the_next_backup_names_the_merged_object_and_not_its_pieces(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "server", new_place())
    for _ in range(4):
        growing.backup()
    optimize(growing.place)
    growing.backup()
    assert zxids(newest(growing.place)) == [(1, 5), (6, 6)]
    (merged, last) = sorted(newest(growing.place).record.logs, key=lambda log: log.first)
    assert (merged.first, merged.last, merged.records, last.first) == (1, 5, 5, 6)
    assert optimize(growing.place).objects_before == 0, "one that is larger than all others together is left"
    growing.backup(6)
    before = everything(growing.place)
    assert optimize(growing.place).objects_before == 3
    assert (zxids(newest(growing.place)), everything(growing.place)) == ([(1, 12)], before)
    assert verified(growing.place) == [GOOD] * 7


def test_pieces_of_two_files_stay_apart(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "server", new_place())
    growing.backup()
    growing.backup(roll=True)
    growing.backup()
    before = everything(growing.place)
    optimize(growing.place)
    assert zxids(newest(growing.place)) == [(1, 2), (3, 4)]
    assert everything(growing.place) == before


def test_after_the_newest_backup_is_deleted_the_next_one_goes_on_where_the_one_before_ended(tmp_path: Path) -> None:
    """The merged object holds more than any backup that is left."""
    growing = Growing(tmp_path / "server", new_place())
    for _ in range(4):
        last = growing.backup()
    optimize(growing.place)
    with writing(growing.place, "delete", utc_now, random_token) as session:
        delete(session, [last], "test")
    assert zxids(newest(growing.place))[-1] == (4, 4)
    growing.backup()
    assert zxids(newest(growing.place))[-1] == (5, 6)
    assert verified(growing.place) == [GOOD] * 5
    growing.backup(2)
    growing.backup(2)
    before = everything(growing.place)
    assert optimize(growing.place).objects_before == 2, "what two objects hold is not touched"
    sweep(growing.place)
    assert everything(growing.place) == before
    assert zxids(newest(growing.place))[-2:] == [(5, 6), (7, 10)]
    assert verified(growing.place) == [GOOD] * 7


def test_a_damaged_piece_is_told_and_left_as_it_is(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "server", new_local_place(tmp_path / "repository"))
    for _ in range(3):
        growing.backup()
    victim = next(log for log in newest(growing.place).logs if log.first == 3)
    name = newest(growing.place).object_name(victim)
    stored = tmp_path / "repository" / name
    stored.chmod(0o600)
    stored.write_bytes(stored.read_bytes()[:-6] + b"?" + stored.read_bytes()[-5:])
    done = optimize(growing.place)
    assert [(f.code, f.where) for f in done.findings] == [("not-merged", name)]
    assert zxids(newest(growing.place)) == [(1, 1), (2, 2), (3, 3), (4, 4)]


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("behind", [bytes(20), b"\0\0\0\0\x12\x34torn", txn(9)], ids=["zeros", "torn", "record"])
def test_a_piece_with_something_behind_its_records_is_left(tmp_path: Path, which: int, behind: bytes) -> None:
    """Its hash and its transactions are those of its row, so nothing else tells."""
    growing = Growing(tmp_path / "server", new_place())
    for _ in range(2):
        growing.backup()
    place, view = growing.place, newest(growing.place)
    rows = [view.row_of(log) for log in view.logs]
    name = layout.segment(place.source, rows[which])
    content = place.store.get(name, MIB) + behind
    place.store.delete(name)
    place.store.put_new(name, content)
    sha256 = hashlib.sha256(content).hexdigest()
    size = {"stored_bytes": len(content), "plain_bytes": len(content)}
    rows[which] = replace(rows[which], sha256=sha256, plain_sha256=sha256, **size)
    merged = merge_with(MergeUnit(place, tuple(rows)), lambda _: None, random_token)
    assert (merged.segment, merged.where) == (None, name)
    assert merged.problem == "a record in it is damaged"


def test_pieces_that_a_record_says_too_little_of_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first release wrote no sizes into its records: nobody could find such a piece in a larger object."""
    with monkeypatch.context() as patched:
        patched.setattr(
            "logkeep.zookeeper.repo.sink.log_record",
            lambda p, apart: replace(log_record(p, apart), size_bytes=0, sha256="", records=0, min_time_ms=0),
        )
        growing = Growing(tmp_path / "server", new_place())
        growing.backup()
    growing.backup()
    growing.backup()
    before = everything(growing.place)
    optimize(growing.place)
    assert zxids(newest(growing.place)) == [(1, 1), (2, 2), (3, 4)]
    assert everything(growing.place) == before


def test_a_record_and_rows_that_do_not_belong_together_are_damage(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "server", new_place())
    for _ in range(3):
        growing.backup()
    entry = read_chain(growing.place).completed[-2]
    optimize(growing.place)
    view = view_of(growing.place, entry)
    rows = [row for token, row in view.rows.items() if row.token == token]
    for wrong in (
        view.record.logs[1:],
        (view.record.logs[0], view.record.logs[2]),
        (replace(view.record.logs[0], size_bytes=1 << 20), *view.record.logs[1:]),
        (replace(view.record.logs[0], last=99), *view.record.logs[1:]),
    ):
        with pytest.raises(Damaged, match="does not have"):
            find_pieces(replace(view.record, logs=wrong), rows, "zk")


class _StopAfter:
    def __init__(self, growing: Growing, most: int) -> None:
        self.growing, self.left = growing, most

    @property
    def requested(self) -> bool:
        return self.left <= 0

    def wait(self, _seconds: float) -> None:
        self.left -= 1
        self.growing.last += 1
        self.growing.server.add(self.growing.log, [self.growing.last])
        self.growing.server.zxid = self.growing.last

    def raising(self) -> AbstractContextManager[None]:
        return nullcontext()


def test_who_follows_merges_as_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "MERGE_EVERY", 10)
    growing, heard = Growing(tmp_path / "server", new_place()), list[follow.FollowRound[ZooKeeperBackupDone]]()
    ensemble = FollowedEnsemble(
        growing.place,
        lambda: archiving(growing.place, clock=utc_now, tokens=random_token),
        ZooKeeperBackupOptions((growing.server.place("zk1"),)),
        rounds(growing.server),
        lambda _, word: word,
        0.0,
        lambda: optimize(growing.place, least=8),
    )
    follow.Follower(ensemble, _StopAfter(growing, 13), 0.0, heard.append).run()
    merged = {one.number: one.merged.objects_before for one in heard if one.merged}
    assert (merged, [one.error for one in heard if one.error]) == ({11: 11}, [])
    sweep(growing.place)
    assert len(log_objects(growing.place)) == 3
    assert verified(growing.place, Level.DATA)[-4:] == [GOOD] * 4
