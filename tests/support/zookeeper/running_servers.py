"""Backups from real servers that run, and replays of what they hold with a reader of the tests' own."""

import os
from pathlib import Path

from logkeep.embedded.zookeeper import EmbeddedZooKeeper
from logkeep.model.cache import cache_dir
from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.zookeeper.backup.rounds import RoundSettings
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.backup.server_files import MemberPlace
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.bundle.writer import new_bundle
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.model.tree import Tree
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.server.client import server_state
from logkeep.zookeeper.server.four_letter import four_letter
from tests.support.zookeeper.handmade_directories import INLINE
from tests.support.zookeeper.replayed_files import Replay, fuzzy_end
from tests.support.zookeeper.server_files import bodies_of, loaded

CACHE = cache_dir(os.environ, Path.home())
PATIENCE_S = 30.0


def asking(patience_s: float = PATIENCE_S) -> RoundSettings:
    return RoundSettings(INLINE, lambda host: server_state(host, 10.0), timeout_s=patience_s)


def word(host: str, asked: str) -> str:
    return four_letter(host, asked, 10.0)


def place_of(server: EmbeddedZooKeeper, name: str = "standalone") -> MemberPlace:
    return MemberPlace(name, server.data_dir, server.log_dir, server.client)


def bundle_of(
    server: EmbeddedZooKeeper, out: Path, name: str, codec: Codec = Codec.NONE
) -> tuple[BundleView, ZooKeeperBackupDone]:
    with new_bundle(out, name, clock=utc_now, tokens=random_token, codec=codec) as sink:
        done = back_up(ZooKeeperBackupOptions((place_of(server),)), sink, asking(), word)
    return BundleView(sink.path), done


def archive_of(
    place: SourceRef, *members: MemberPlace, new_history: bool = False, patience_s: float = PATIENCE_S
) -> ZooKeeperBackupDone:
    with archiving(place, clock=utc_now, tokens=random_token) as sink:
        return back_up(ZooKeeperBackupOptions(members, new_history=new_history), sink, asking(patience_s), word)


def plain_copy(view: BackupView, member: str, directory: Path) -> Path:
    """One member's files under their usual names, as Apache's own tools want them."""
    directory.mkdir()
    everything: list[ArchivedSnapshot | ArchivedLog] = [*view.snapshots, *view.logs]
    for one in everything:
        if one.member == member:
            name = f"log.{one.first:x}" if isinstance(one, ArchivedLog) else one.name
            with view.open(one) as source:
                (directory / name).write_bytes(source.read())
    return directory


def contiguous(view: BackupView, member: str, zxid: int) -> list[ArchivedLog]:
    """The pieces that a replay from a snapshot at `zxid` can go through without a hole, judged by their numbers."""
    found: list[ArchivedLog] = []
    for log in (one for one in view.logs if one.member == member and one.last > zxid):
        before = found[-1].last if found else zxid
        fits = log.first <= before + 1 if log.first >> 32 == before >> 32 else log.first & 0xFFFFFFFF == 1
        if not fits:
            break
        found.append(log)
    return found


def replays(view: BackupView, member: str, files: Path, until: int | None = None) -> list[tuple[Tree, Replay]]:
    """From every snapshot to the end of what is kept behind it; the fuzzy end of each must be reached."""
    found = []
    for snapshot in (one for one in view.snapshots if one.member == member):
        tree, ending = loaded(files / snapshot.name)
        logs = contiguous(view, member, snapshot.zxid)
        end, replay = fuzzy_end(tree, ending), Replay()
        assert snapshot.fuzzy_end == end
        for log in logs:
            replay.run(tree, bodies_of(files / f"log.{log.first:x}"), until=until, exact_from=end or 0)
        reached = max([tree.zxid, *(log.last for log in logs)])
        assert end is None or reached >= end, f"{snapshot.name} ends at {end:x}, its log at {reached:x}"
        found.append((tree, replay))
    return found
