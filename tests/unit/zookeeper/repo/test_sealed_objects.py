"""A wrong bit anywhere in an archived object is found, also where nothing of the backup lies; and it is mended."""

import os
from itertools import count, product
from pathlib import Path

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.model.ids import BackupId
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.verdicts import DAMAGED, GOOD
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.chain.write_session import writing
from logkeep.repository.upkeep.prune import delete
from logkeep.store.memory import MemoryStore
from logkeep.zookeeper.backup import rounds
from logkeep.zookeeper.backup.server_files import MemberPlace, ServerFiles, list_files
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.archived import ArchivedFile
from logkeep.zookeeper.model.findings import Class
from logkeep.zookeeper.repo.verify import DeepVerification
from logkeep.zookeeper.timeline.object_check import ObjectChecks, check_data, check_files, to_read
from logkeep.zookeeper.verify.tasks import ObjectsUnit, checked_by, shares
from tests.support.zookeeper.changed_documents import stored_path
from tests.support.zookeeper.handmade_directories import MadeServer, bundled
from tests.support.zookeeper.merged_backups import optimize
from tests.support.zookeeper.repaired_backups import byte_in, damage, ids, repaired, verified, viewed
from tests.support.zookeeper.repositories import archived, archived_all, new_place

GZIP_TIME = 5
"""A byte of its head that nothing depends on."""


class Counting(MemoryStore):
    """How often logs were read from their first byte on."""

    begun = 0

    def get_range(self, name: str, start: int, length: int) -> bytes:
        self.begun += "/txnlogs/" in name and start == 0
        return super().get_range(name, start, length)


def grown(root: Path, codec: Codec, *, merged: bool, store: MemoryStore | None = None) -> SourceRef:
    """Backups of one transaction more each. If they are merged, the newest ends within the object that holds it all."""
    place, server = new_place(store), MadeServer(root, zxid=1)
    server.snapshot(0)
    log = server.log([1])
    archived(place, server, codec=codec)
    for zxid in (2, 3, 4):
        server.add(log, [zxid])
        server.zxid = zxid
        archived(place, server, codec=codec)
    if merged:
        optimize(place)
        with writing(place, "delete", utc_now, random_token) as session:
            delete(session, [BackupId(ids(place)[-1])], "test")
    return place


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("codec", list(Codec))
def test_a_wrong_bit_is_found_anywhere(tmp_path: Path, codec: Codec, merged: bool) -> None:
    place = grown(tmp_path, codec, merged=merged)
    newest = ids(place)[-1]
    view = viewed(place, newest)
    assert bool(view.within) == merged
    missed = []
    for kept in (view.logs[0], view.snapshots[0]):
        size = len(place.store.get(view.object_name(kept), 1 << 30))
        for at in (*range(10), *range(10, size - 5, 53), *range(size - 5, size)):
            damage(place, view, kept, at)
            if verified(place, newest).document.verdict != DAMAGED:
                missed.append((kept.name, at))
            damage(place, view, kept, at)
    assert missed == []
    assert verified(place, newest).document.verdict == GOOD


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("which", ["log", "snapshot"])
def test_what_nothing_depends_on_is_mended_too(tmp_path: Path, which: str, merged: bool) -> None:
    place = grown(tmp_path, Codec.GZIP, merged=merged)
    newest = ids(place)[-1]
    view = viewed(place, newest)
    everything: list[ArchivedFile] = [*view.logs, *view.snapshots]
    bad = next(kept for kept in everything if kept.name.startswith(which))
    damage(place, view, bad, GZIP_TIME)
    assert verified(place, newest).document.verdict == DAMAGED
    (mend,) = repaired(place, newest).repaired.values()
    assert ("repacked" if which == "log" else "from its own bytes") in mend.provenance
    assert verified(place, newest).document.verdict == GOOD


def test_what_is_whole_helps_others_although_it_is_badly_stored(tmp_path: Path) -> None:
    place, count = new_place(), 200
    servers = [MadeServer(tmp_path / name, zxid=count) for name in ("zk1", "zk2")]
    for server in servers:
        server.snapshot(0)
        server.log(range(1, count + 1), creating=True)
    archived_all(place, servers, codec=Codec.GZIP)
    (newest,) = ids(place)
    view = viewed(place, newest)
    first, second = view.logs
    middle = len(place.store.get(view.object_name(first), 1 << 30)) // 2
    damage(place, view, first, middle)
    damage(place, view, second, GZIP_TIME)
    told = {kept.member: mend.provenance for kept, mend in repaired(place, newest, accept_loss=True).repaired.items()}
    assert ("spliced" in told["zk1"], "repacked" in told["zk2"]) == (True, True), told
    assert verified(place, newest).document.verdict == GOOD


def test_a_loss_is_told_and_not_that_the_rest_of_the_object_is_whole(tmp_path: Path) -> None:
    """Backups of one object each find what is wrong in their own part; in others' parts, that something is."""
    place = grown(tmp_path, Codec.NONE, merged=True)
    view = viewed(place, ids(place)[-1])
    damage(place, view, view.logs[0], byte_in(0))
    codes = [[finding.code for finding in verified(place, one).findings] for one in ids(place)]
    assert all("lost-transactions" in each and "seal-broken" not in each for each in codes)
    damage(place, view, view.logs[0], byte_in(0), byte_in(3))
    assert {tuple(finding.code for finding in verified(place, one).findings) for one in ids(place)} == {
        ("seal-broken",)
    }


def test_it_is_told_also_where_a_note_speaks_of_the_same_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live server that nobody can ask: nothing bounds its newest snapshot, which is a note on that snapshot."""
    place, server = new_place(), MadeServer(tmp_path / "server")
    server.snapshot(0, digest=False)
    log = server.log([1, 2, 3, 4, 5], creating=True)
    server.snapshot(3, digest=False, nodes=[1, 2, 3])
    moments = count(1)

    def written_meanwhile(where: MemberPlace) -> ServerFiles:
        os.utime(log, ns=(moment := next(moments), moment))
        return list_files(where)

    monkeypatch.setattr(rounds, "list_files", written_meanwhile)
    archived(place, server, codec=Codec.GZIP)
    (newest,) = ids(place)
    view = viewed(place, newest)
    assert "snapshot-unbounded" in {finding.code for finding in verified(place, newest).findings}
    name = damage(place, view, view.snapshots[-1], GZIP_TIME)
    found = verified(place, newest)
    assert found.document.verdict == DAMAGED
    assert ("seal-broken", name) in {(finding.code, finding.where) for finding in found.findings}


@pytest.mark.parametrize("most_bytes", [1, 1 << 20])
def test_it_is_told_once_however_the_work_is_shared(tmp_path: Path, most_bytes: int) -> None:
    place = grown(tmp_path, Codec.NONE, merged=True)
    view = viewed(place, ids(place)[-1])
    damage(place, view, view.logs[0], 3)
    units = [ObjectsUnit(view.only(share), share) for share in shares(to_read(view, ObjectChecks()), most_bytes)]
    found = checked_by(InlineEngine(), units, ObjectChecks())
    assert [seen.kind for seen in found.seen] == [Class.SEAL_BROKEN]


def test_no_moment_is_given_up_for_it(tmp_path: Path) -> None:
    place = grown(tmp_path, Codec.GZIP, merged=False)
    newest = ids(place)[-1]
    view = viewed(place, newest)
    before = looked(place, newest)
    everything: list[ArchivedFile] = [*view.logs, *view.snapshots]
    for kept in everything:
        damage(place, view, kept, GZIP_TIME)
    assert looked(place, newest) == before


def looked(place: SourceRef, backup_id: int) -> list[str]:
    """What can be restored to."""
    looks: list[DeepVerification] = []
    verified(place, backup_id, looks=looks)
    (found,) = looks
    assert found.verified is not None
    return [str(interval) for reachable in found.verified.reachable.values() for interval in reachable]


def test_of_many_pieces_in_one_object_only_the_last_has_it_read_as_a_whole(tmp_path: Path) -> None:
    store = Counting()
    place = grown(tmp_path, Codec.NONE, merged=True, store=store)
    newest = ids(place)[-1]
    assert len(viewed(place, newest).within) == 3
    store.begun = 0
    assert verified(place, newest).document.verdict == GOOD
    assert store.begun == 1


@pytest.mark.parametrize("codec", list(Codec))
def test_a_wrong_bit_is_found_anywhere_in_a_file_of_a_bundle(tmp_path: Path, codec: Codec) -> None:
    server = MadeServer(tmp_path / "server", zxid=4)
    server.snapshot(0)
    server.log(range(1, 5), creating=True)
    view, _ = bundled(server, tmp_path / "backups", codec=codec)
    missed = []
    for kept in (view.logs[0], view.snapshots[0]):
        stored = stored_path(view, kept)
        stored.chmod(0o600)
        whole = stored.read_bytes()
        for at, bit in product(range(len(whole)), (1, 16)):
            stored.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            if not _looks_damaged(view):
                missed.append((kept.name, at, bit))
        stored.write_bytes(whole + b"\0")
        if not _looks_damaged(view):
            missed.append((kept.name, len(whole), 0))
        stored.write_bytes(whole)
    assert missed == []
    assert not _looks_damaged(view)


def _looks_damaged(view: BundleView) -> bool:
    return bool(check_data(view, check_files(view), lambda _: None).damaged)
