"""Replay of what real servers of every line wrote under load, against the servers themselves.

The tree is read by an independent client while the load stands still; the digests are the server's own, after every
transaction. The other lines and the whole count are in `soak`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.formats.zookeeper.names import SnapshotPacking
from logkeep.formats.zookeeper.transactions import TransactionType
from logkeep.model.cache import cache_dir
from logkeep.zookeeper.model.tree import new_tree
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.replayed_files import Replay, fuzzy_end
from tests.support.zookeeper.server_files import bodies, whole_snapshots
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import Recording, record
from tests.support.zookeeper.unstartable_snapshots import settle

pytestmark = pytest.mark.xdist_group("zookeeper-replay")
SETTINGS = {"snapCount": "800", "preAllocSize": "4096"}
JAVA = ("-Dznode.container.checkIntervalMs=300",)
OF_ALL = {
    TransactionType.CREATE, TransactionType.DELETE, TransactionType.SET_DATA, TransactionType.SET_ACL,
    TransactionType.MULTI,
    TransactionType.ERROR, TransactionType.CREATE_SESSION,
    TransactionType.CLOSE_SESSION,
}  # fmt: skip
MOST_SNAPSHOTS = 8
"""So many are replayed, evenly chosen."""
OF_35 = {
    TransactionType.CREATE2,
    TransactionType.CREATE_CONTAINER,
    TransactionType.DELETE_CONTAINER,
    TransactionType.CREATE_TTL,
}


@dataclass(frozen=True)
class Case:
    version: str
    packing: SnapshotPacking = SnapshotPacking.PLAIN
    more: tuple[tuple[str, str], ...] = ()
    first_life: tuple[tuple[str, str], ...] = ()
    """Settings of the first half of the run alone."""
    java: tuple[str, ...] = ()

    @property
    def settings(self) -> Mapping[str, str]:
        packed = {"snapshot.compression.method": self.packing.value} if self.packing else {}
        return SETTINGS | packed | dict(self.more)

    @property
    def has_digests(self) -> bool:
        return ZooKeeperRelease(self.version).line >= (3, 6) and ("digest.enabled", "false") not in self.more


CASES = (
    Case("3.4.14"),
    Case("3.5.10"),
    Case("3.6.4", first_life=(("closeSessionTxn.enabled", "false"),)),
    Case("3.7.2", SnapshotPacking.GZIP),
    Case("3.8.4", SnapshotPacking.SNAPPY, java=("-Dfile.encoding=US-ASCII",)),
    Case("3.9.5"),
)
EVERYDAY = (
    Case("3.4.14"),
    Case("3.9.5", SnapshotPacking.SNAPPY, first_life=(("closeSessionTxn.enabled", "false"),)),
)
UNSEALED = Case("3.9.5", more=(("digest.enabled", "false"),))
"""It writes no digests, so the parts of its snapshots are others."""


@pytest.mark.parametrize("case", EVERYDAY, ids=lambda case: case.version)
def test_a_replay_is_the_servers_own_tree(case: Case, tmp_path: Path) -> None:
    judge(case, tmp_path, transactions=2_000)


def test_a_replay_without_digests_is_the_servers_own_tree_too(tmp_path: Path) -> None:
    judge(UNSEALED, tmp_path, transactions=1_200)


@pytest.mark.soak
@pytest.mark.parametrize("case", [case for case in CASES if not case.has_digests], ids=lambda case: case.version)
def test_a_replay_of_many_without_digests_is_the_servers_own_tree(case: Case, tmp_path: Path) -> None:
    replay = judge(case, tmp_path, transactions=25_000)
    print(f"{case.version}: {replay.transactions:,} transactions replayed, which has no digests: equal trees")


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_digests(tmp_path: Path) -> None:
    """Each of another transaction; those of replays from snapshots come on top and are not counted."""
    done = {
        case.version: judge(case, tmp_path / case.version, transactions=50_000) for case in CASES if case.has_digests
    }
    for version, replay in done.items():
        print(f"{version}: {replay.transactions:,} transactions replayed, {replay.compared:,} digests compared")
    compared, wrong = sum(r.compared for r in done.values()), sum(len(r.wrong) for r in done.values())
    print(f"{', '.join(done)}: {compared:,} digests compared, {wrong} mismatches")
    assert compared >= 100_000


def judge(case: Case, directory: Path, *, transactions: int) -> Replay:
    release = ZooKeeperRelease(case.version)
    server = EmbeddedZooKeeper(
        directory,
        cache_dir(os.environ, Path.home()),
        release=release,
        settings=case.settings,
        java_options=JAVA + case.java,
    )
    recordings = run(server, case, transactions)
    replay = from_the_beginning(server, recordings)
    assert replay.transactions >= transactions
    from_snapshots(server, recordings[-1], case.packing)
    assert replay.wrong == []
    assert replay.compared > transactions / 3 or not case.has_digests
    assert replay.half_failed > 0
    assert OF_ALL | (OF_35 if release.line >= (3, 5) else set()) <= set(replay.kinds)
    return replay


def run(server: EmbeddedZooKeeper, case: Case, transactions: int) -> list[Recording]:
    """Two lives of a server, the first one ended by a kill; the tree is looked at four times."""
    recordings = []
    for seed in (1, 2):
        server.settings = {**case.settings, **(dict(case.first_life) if seed == 1 else {})}
        with server, Load([server.client], server.password, line=server.release.line, seed=seed) as load:
            for _ in range(2):
                load.wait_for(transactions // 4)
                with load.paused():
                    recordings.append(record(server.client, server.password))
            if seed == 1:
                load.stop()
                settle(server)
                server.kill()
    return recordings


def from_the_beginning(server: EmbeddedZooKeeper, recordings: list[Recording]) -> Replay:
    """Through all logs, and equal at each of the moments that were looked at."""
    replay, tree = Replay(), new_tree(with_config=server.release.line >= (3, 5))
    for recording in recordings:
        replay.run(tree, bodies(server.log_dir), until=recording.zxid)
        assert differences(recording, tree) == []
    replay.run(tree, bodies(server.log_dir))
    return replay


def from_snapshots(server: EmbeddedZooKeeper, last: Recording, packing: SnapshotPacking) -> None:
    """However fuzzy: replayed to the last moment that was looked at, it is the same tree."""
    used = 0
    found = [each for each in whole_snapshots(server.data_dir, most_cut=2) if each[1].zxid <= last.zxid]
    for name, tree, ending in found[:: max(1, len(found) // MOST_SNAPSHOTS)]:
        replay, end = Replay(), fuzzy_end(tree, ending)
        replay.run(tree, bodies(server.log_dir), until=last.zxid, exact_from=end)
        assert replay.wrong == []
        assert differences(last, tree) == [], name
        used += name.endswith(packing.value)
    assert used
