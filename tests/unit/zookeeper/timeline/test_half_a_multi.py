"""Before 3.6 a snapshot that is begun within a multi bears its zxid and holds a half of it: a replay ends it."""

import pytest

from logkeep.formats.zookeeper.snapshot_writer import exact_snapshot
from logkeep.formats.zookeeper.transactions import (
    OPEN_ACL,
    Create,
    Delete,
    Multi,
    MultiPart,
    Transaction,
    TransactionType,
)
from logkeep.zookeeper.model.archived import Member
from logkeep.zookeeper.model.tree import new_tree, rows_of
from logkeep.zookeeper.timeline.plan import RestorePath, ToEnd, plan
from logkeep.zookeeper.timeline.replay import replay
from logkeep.zookeeper.timeline.survey import LogTimes, survey
from tests.support.zookeeper import encoding
from tests.support.zookeeper.handmade_history import BEGAN_MS, MemoryView

COME_AND_GO = Create(b"/x", b"", OPEN_ACL, False, 1)
MULTI = Multi((MultiPart(TransactionType.CREATE, COME_AND_GO), MultiPart(TransactionType.DELETE, Delete(b"/x"))))


def _transaction(zxid: int, kind: int, change: Create | Multi) -> Transaction:
    return Transaction(1, zxid, zxid, BEGAN_MS + zxid, kind, change, None)


@pytest.mark.parametrize("logs", [((2, 3),), ((2,), (3,)), ((3,),)], ids=["one-log", "two-logs", "purged"])
def test_what_a_snapshot_lacks_of_its_own_transaction(logs: tuple[tuple[int, ...], ...]) -> None:
    """Where no log holds it any more, nobody can know."""
    later = _transaction(3, TransactionType.CREATE, Create(b"/b", b"", OPEN_ACL, False, 2))
    by_zxid = {2: _transaction(2, TransactionType.MULTI, MULTI), 3: later}
    tree = new_tree(with_config=False)
    tree.apply(_transaction(2, TransactionType.CREATE, COME_AND_GO))
    view = MemoryView(members=[Member(name="a", role="standalone")])
    half = b"".join(exact_snapshot({}, *rows_of(tree), zxid=2, digest=None))
    view.add_snapshot(half, 2, fuzzy_end=None, bound=2, nodes=len(tree.nodes))
    for zxids in logs:
        view.add_log([encoding.record(encoding.body(by_zxid[zxid])) for zxid in zxids])
    path = plan(survey(view), ToEnd(), LogTimes(view))
    assert isinstance(path, RestorePath)
    replayed = replay(view, path).tree
    assert b"/b" in replayed.nodes
    assert (b"/x" in replayed.nodes) is (2 not in logs[0])
