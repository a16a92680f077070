"""The whole way: backed up online under load, restored to moments that were seen, and started by the real server.

Each server lives several times, with packed and plain snapshots, and is asked for everything that its version knows.
Of the first life the oldest logs are purged, so no restore can begin with the empty tree; and it has nodes so large
that a snapshot of them takes more than a thousand transactions.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import RELEASES, EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.formats.zookeeper.names import SnapshotPacking, parse_name
from logkeep.formats.zookeeper.transactions import CloseSession, TransactionType
from logkeep.model.segments import Codec
from logkeep.zookeeper.bundle.view import BundleView
from logkeep.zookeeper.model.archived import ArchivedSnapshot, BackupView
from tests.crash.seeds import seeded
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.recorded_moments import (
    JAVA,
    SESSION_MS,
    SETTINGS,
    Moments,
    Only,
    Told,
    looked_at,
    restored_to,
    scratch,
)
from tests.support.zookeeper.replayed_files import Replay, transactions_in
from tests.support.zookeeper.repositories import new_local_place, newest
from tests.support.zookeeper.running_servers import CACHE, archive_of, bundle_of, place_of, plain_copy
from tests.support.zookeeper.server_files import bodies_of, loaded, logs
from tests.support.zookeeper.tree_recorder import Recording, record
from tests.support.zookeeper.unstartable_snapshots import settle
from tests.support.zookeeper.versions import MATRIX
from tests.support.zookeeper.wide_snapshots import empty, fill, widen, width

pytestmark = pytest.mark.xdist_group("zookeeper-matrix")
OFTEN = ("-Dznode.container.checkIntervalMs=300",)
EVERYWHERE = {
    TransactionType.CREATE, TransactionType.DELETE, TransactionType.SET_DATA, TransactionType.SET_ACL,
    TransactionType.MULTI,
    TransactionType.ERROR, TransactionType.CREATE_SESSION,
    TransactionType.CLOSE_SESSION,
}  # fmt: skip
BASE = "/load0"
SINCE_35 = {
    TransactionType.CREATE2,
    TransactionType.CREATE_CONTAINER,
    TransactionType.DELETE_CONTAINER,
    TransactionType.CREATE_TTL,
}


@dataclass(frozen=True)
class Life:
    packing: SnapshotPacking = SnapshotPacking.PLAIN
    paths_of_sessions: bool = True
    """Whether the end of a session names the nodes that go with it."""

    def settings(self, line: tuple[int, int]) -> dict[str, str]:
        if line < (3, 6):
            return SETTINGS
        more = {"snapshot.compression.method": self.packing.value} if self.packing is not SnapshotPacking.PLAIN else {}
        return SETTINGS | more | {"closeSessionTxn.enabled": str(self.paths_of_sessions).lower()}


PACKED = (Life(SnapshotPacking.GZIP, paths_of_sessions=False), Life(SnapshotPacking.SNAPPY), Life())
ALIKE = (Life(), Life())


@dataclass(frozen=True)
class Lived:
    """A server that was backed up while it worked."""

    release: ZooKeeperRelease
    moments: list[Recording]
    views: tuple[BackupView, BackupView]
    """A repository and a bundle; both hold all moments."""
    wide: str = ""
    """The name of a wide snapshot."""


def test_moments_of_a_working_server_come_back(tmp_path: Path) -> None:
    told = Told("3.9.5")
    lived = live("3.9.5", (Life(),), tmp_path, told, moments=2)
    come_back(lived, tmp_path, told)
    print(told)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", [*MATRIX, *(each for each in RELEASES if each not in MATRIX)])
def test_every_feature_and_many_moments_come_back(version: str, tmp_path: Path) -> None:
    told = Told(version)
    lives = PACKED if ZooKeeperRelease(version).line >= (3, 6) else ALIKE
    lived = live(version, lives, tmp_path, told, moments=12, whole=True)
    has_every_feature(lived, tmp_path / "features")
    come_back(lived, tmp_path, told)
    from_the_wide_one(lived, tmp_path, told)
    print(told)


def server_of(directory: Path, version: str, *java: str) -> EmbeddedZooKeeper:
    release = ZooKeeperRelease(version)
    return EmbeddedZooKeeper(directory, CACHE, release=release, settings=SETTINGS, java_options=(*JAVA, *java))


def live(
    version: str, lives: tuple[Life, ...], directory: Path, told: Told, *, moments: int, whole: bool = False
) -> Lived:
    """`whole`: with a purge and a wide snapshot at the beginning."""
    place, taken, wide = new_local_place(directory / "repo"), Moments(seeded(f"moments of {version}")), ""
    server = server_of(directory / "server", version, *OFTEN)
    hosts, line = [server.client], server.release.line
    for number, life in enumerate(lives):
        server.settings = life.settings(line)
        with server:
            with told.load(Load(hosts, server.password, line=line, seed=number, session_ms=SESSION_MS)) as load:
                if whole and number == 0:
                    purge_the_beginning(server, load)
                    wide = wide_snapshot(server, load, taken)
                for _ in range(moments // len(lives)):
                    taken.take(load, lambda: record(server.client, server.password))
                told.backup(load, lambda: archive_of(place, place_of(server)))
                if number == len(lives) - 1:
                    told.backup(load, lambda: bundle_of(server, directory / "out", "last", Codec.ZSTD)[1])
            if number < len(lives) - 1:
                settle(server)
    return Lived(server.release, taken.taken, (newest(place), BundleView(directory / "out" / "last")), wide)


def purge_the_beginning(server: EmbeddedZooKeeper, load: Load) -> None:
    """Apache's own purge, until the first log is gone."""
    arguments = [str(server.log_dir), str(server.data_dir), "-n", "3"]
    load.wait_for(2_000)
    while logs(server.log_dir)[0].name == "log.1":
        load.wait_for(1_000)
        server.java_tool("org.apache.zookeeper.server.PurgeTxnLog", arguments)


def wide_snapshot(server: EmbeddedZooKeeper, load: Load, taken: Moments) -> str:
    fill(server, BASE)
    name = widen(server, load, BASE)
    taken.take(load, lambda: record(server.client, server.password))
    empty(server, BASE)
    return name


def come_back(lived: Lived, directory: Path, told: Told) -> None:
    """From the repository and from the bundle by turns."""
    for number, moment in enumerate(lived.moments):
        restored(lived, lived.views[number % 2], moment, directory / f"moment-{number}", told)


def from_the_wide_one(lived: Lived, directory: Path, told: Told) -> None:
    """The first moment lies behind it."""
    view = lived.views[0]
    wide = next(each for each in view.snapshots if each.name == lived.wide)
    assert restored(lived, Only(view, (wide,)), lived.moments[0], directory / "wide", told) == wide
    with view.open(wide) as source:
        (directory / wide.name).write_bytes(source.read())
    told.more.append(f"one of them from a snapshot of {width(loaded(directory / wide.name)[0]):,} transactions")


def restored(lived: Lived, view: BackupView, moment: Recording, home: Path, told: Told) -> ArchivedSnapshot | None:
    """The snapshot that it began with."""
    with scratch(home):
        server = server_of(home / "server", lived.release.version)
        path = restored_to(view, moment, [server], told)
        with server:
            looked_at(server, moment, told)
    told.restores += 1
    return path.base.snapshot


def has_every_feature(lived: Lived, directory: Path) -> None:
    """What the repository holds."""
    view = lived.views[0]
    files = plain_copy(view, "standalone", directory)
    replay, ends = Replay(), set[bool]()
    for log in view.logs:
        for transaction in transactions_in(bodies_of(files / f"log.{log.first:x}")):
            replay.count(transaction)
            if isinstance(transaction.change, CloseSession) and transaction.change.paths != ():
                ends.add(transaction.change.paths is not None)
    line, names = lived.release.line, [parse_name(each.name) for each in view.snapshots]
    packings = {name.packing for name in names if name is not None}
    assert set(replay.kinds) >= EVERYWHERE | (SINCE_35 if line >= (3, 5) else set())
    assert replay.half_failed > 0
    assert ends == ({True, False} if line >= (3, 6) else {False})
    assert packings == (set(SnapshotPacking) if line >= (3, 6) else {SnapshotPacking.PLAIN})
    assert all(log.first > 1 for log in view.logs), "restores can begin with the empty tree"
