"""What every member of a real ensemble wrote, over several epochs and a reconfiguration, replayed for each of them."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from logkeep.embedded.zookeeper import ZooKeeperRelease
from logkeep.formats.zookeeper.agreement import same_transaction
from logkeep.formats.zookeeper.names import follows
from logkeep.formats.zookeeper.transactions import TransactionType, decode
from logkeep.model.cache import cache_dir
from logkeep.zookeeper.model.tree import Tree
from tests.support.servers.zookeeper_ensemble import ZooKeeperEnsemble, ZooKeeperMember
from tests.support.zookeeper.encoding import LOG_HEADER
from tests.support.zookeeper.ensemble_members import everywhere_the_same, leave_and_join, members_agree
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.replayed_files import Replay, fuzzy_end
from tests.support.zookeeper.server_files import logs, whole_snapshots
from tests.support.zookeeper.slow_log import record_at
from tests.support.zookeeper.tree_judge import differences
from tests.support.zookeeper.tree_recorder import Recording
from tests.support.zookeeper.unstartable_snapshots import WHOLE_SINCE

pytestmark = pytest.mark.xdist_group("zookeeper-ensemble")
SETTINGS = {"snapCount": "700", "preAllocSize": "4096", "forceSync": "no"}


@pytest.mark.soak
@pytest.mark.parametrize("version", ("3.4.14", "3.5.10", "3.6.4", "3.7.2", "3.8.4", "3.9.5"))
def test_each_member_of_every_line_replays_many(version: str, tmp_path: Path) -> None:
    judge(version, tmp_path, transactions=15_000)


def judge(version: str, directory: Path, *, transactions: int) -> None:
    release = ZooKeeperRelease(version)
    with ZooKeeperEnsemble(directory, cache_dir(os.environ, Path.home()), release, SETTINGS) as ensemble:
        last = run(ensemble, transactions)
        leader = ensemble.leader()
    members_agree(ensemble, leader, last.zxid)
    replayed = [replay(member, last) for member in ensemble.members.values()]
    assert all(found.wrong == [] for found in replayed)
    assert max(found.transactions for found in replayed) >= transactions
    kinds = {kind for found in replayed for kind in found.kinds}
    if release.line >= (3, 5):
        assert TransactionType.RECONFIG in kinds
    if release.line >= (3, 6):
        assert all(found.compared for found in replayed)


def run(ensemble: ZooKeeperEnsemble, transactions: int) -> Recording:
    """Three epochs under load; all members show the same tree at the end."""
    hosts, line = [member.client for member in ensemble.members.values()], ensemble.release.line
    with Load(hosts, ensemble.password, line=line, seed=7, multis=line >= WHOLE_SINCE) as load:
        for _ in range(2):
            load.wait_for(transactions // 3)
            ensemble.next_epoch()
        if ensemble.release.line >= (3, 5):
            leave_and_join(ensemble)
        load.wait_for(transactions // 3)
        with load.paused():
            return everywhere_the_same(ensemble)


def replay(member: ZooKeeperMember, last: Recording) -> Replay:
    """From every snapshot as far as the logs are without a gap; from one of them at least to the very end."""
    found, ended, logged = Replay(), 0, logged_once(member)
    for name, tree, ending in whole_snapshots(member.data_dir, most_cut=3):
        end = fuzzy_end(tree, ending)
        until = contiguous_end(logged, tree)
        found.run(tree, logged, until=min(until, last.zxid), exact_from=end)
        if tree.zxid == last.zxid:
            ended += 1
            assert differences(last, tree) == [], name
    assert ended
    return found


def logged_once(member: ZooKeeperMember) -> list[bytes]:
    """All of a member's transactions in order, each once: who catches up may log some again, the same ones, but that a
    multi which failed may have its parts marked in one of the two."""
    found: dict[int, bytes] = {}
    for path in logs(member.log_dir):
        content, at = path.read_bytes(), len(LOG_HEADER)
        while (record := record_at(content, at)) is not None:
            before = found.setdefault(record.zxid, record.body)
            assert same_transaction(before, record.body), f"{before.hex()} and {record.body.hex()}"
            at = record.end
        assert not any(content[at:]), path
    return [found[zxid] for zxid in sorted(found)]


def contiguous_end(logged: Sequence[bytes], tree: Tree) -> int:
    reached = tree.zxid
    for body in logged:
        zxid = decode(body).zxid
        if zxid > reached:
            if reached and not follows(reached, zxid):
                break
            reached = zxid
    return reached
