"""Repositories with backups of ZooKeeper, for tests."""

from datetime import timedelta
from pathlib import Path

from logkeep.model.segments import Codec
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import create_repository
from logkeep.repository.chain.commits import SourceRef, read_chain
from logkeep.repository.chain.format import StoreFacts
from logkeep.store.base import Store
from logkeep.store.local.store import LocalStore
from logkeep.store.memory import MemoryStore
from logkeep.zookeeper.backup.run import ZooKeeperBackupDone, ZooKeeperBackupOptions, back_up
from logkeep.zookeeper.model.archived import ArchivedLog, ArchivedSnapshot, BackupView
from logkeep.zookeeper.repo.sink import archiving
from logkeep.zookeeper.repo.view import ArchiveView, view_of
from tests.support.zookeeper.handmade_directories import MadeServer, rounds


def new_place(store: Store | None = None, source: str = "zk") -> SourceRef:
    made = store or MemoryStore()
    repository = create_repository(made, StoreFacts(True, True, True), utc_now(), random_token)
    return SourceRef(made, repository.document.repository, source)


def new_local_place(root: Path) -> SourceRef:
    store = LocalStore(root)
    store.create()
    return new_place(store)


def archived(
    place: SourceRef,
    server: MadeServer,
    *,
    name: str = "zk1",
    new_history: bool = False,
    codec: Codec = Codec.NONE,
    window: timedelta | None = None,
) -> ZooKeeperBackupDone:
    with archiving(place, clock=utc_now, tokens=random_token, codec=codec, history_window=window) as sink:
        return back_up(
            ZooKeeperBackupOptions((server.place(name),), new_history=new_history),
            sink,
            rounds(server),
            lambda _, word: word,
        )


def archived_all(
    place: SourceRef, servers: list[MadeServer], *, new_history: bool = False, codec: Codec = Codec.NONE
) -> ZooKeeperBackupDone:
    """All of them at once, as members `zk1`, `zk2` and so on."""
    places = tuple(s.place(f"zk{n + 1}", f"made:{n}") for n, s in enumerate(servers))
    with archiving(place, clock=utc_now, tokens=random_token, codec=codec) as sink:
        return back_up(
            ZooKeeperBackupOptions(places, new_history=new_history), sink, rounds(*servers), lambda _, word: word
        )


def newest(place: SourceRef) -> ArchiveView:
    return view_of(place, read_chain(place).completed[-1])


def zxids(view: BackupView, member: str = "zk1") -> list[tuple[int, int]]:
    return [(log.first, log.last) for log in view.logs if log.member == member]


def bytes_of(view: BackupView) -> dict[tuple[str, str, str, int], bytes]:
    found = {}
    everything: list[ArchivedSnapshot | ArchivedLog] = [*view.snapshots, *view.logs]
    for one in everything:
        with view.open(one) as file:
            zxid = one.first if isinstance(one, ArchivedLog) else one.zxid
            found[one.member, one.history, one.name, zxid] = file.read()
    return found
