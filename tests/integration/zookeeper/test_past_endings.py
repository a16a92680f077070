"""Deletions by the end of a session, of real servers under load: reported once, by the right transaction, or as unseen.

The truth is a replay of all logs. Then logs are taken away, so that creations are in snapshots alone or nowhere.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from logkeep.engine.inline import InlineEngine
from logkeep.formats.zookeeper.transactions import CloseSession, decode
from logkeep.formats.zookeeper.txnlog import tables
from logkeep.model.work import Engine
from logkeep.zookeeper.history.log_task import Depth, WantedEvents
from logkeep.zookeeper.history.run import History, history
from logkeep.zookeeper.model.archived import ArchivedLog, Member
from logkeep.zookeeper.model.tree import new_tree
from logkeep.zookeeper.verify.directory_view import DirectoryView, directory_view
from tests.support.zookeeper.load import Load
from tests.support.zookeeper.running_servers import CACHE

TRANSACTIONS = 8000
SILENT = {"closeSessionTxn.enabled": "false"}
KINDS = [
    pytest.param(("3.4.14", {}), id="3.4.14"),
    pytest.param(("3.5.10", {}), id="3.5.10", marks=pytest.mark.soak),
    pytest.param(("3.9.5", {}), id="3.9.5"),
    pytest.param(("3.9.5", SILENT), id="3.9.5-silent"),
]
Gone = tuple[int, str]
"""The transaction that ended a session, and a node that it took along."""
_BLIND = re.compile(r"created before (0x[0-9a-f]+) and deleted with their sessions up to (0x[0-9a-f]+)")


@dataclass(frozen=True)
class Lived:
    view: DirectoryView

    @cached_property
    def gone(self) -> Counter[Gone]:
        """What a replay of everything shows."""
        tree, found = new_tree(with_config=True), Counter[Gone]()
        for log in self.view.logs:
            with self.view.open(log) as source:
                for records in tables(source):
                    for at, size in zip(records.body_at.tolist(), records.body_bytes.tolist(), strict=True):
                        transaction = decode(bytes(records.data[at : at + size]))
                        ends = isinstance(transaction.change, CloseSession)
                        before = set(tree.nodes) if ends else set()
                        tree.apply(transaction)
                        taken = before - tree.nodes.keys() if ends else set()
                        found.update((transaction.zxid, path.decode()) for path in taken)
        return found

    def asked(self, logs: Sequence[ArchivedLog]) -> History:
        kept = replace(self.view, logs=tuple(logs))
        return history(kept, WantedEvents(b"/", Depth.EVERYTHING, 1_000_000), _engine)


def _engine(_total_bytes: int = 0) -> Engine:
    return InlineEngine()


@pytest.fixture(scope="module", params=KINDS)
def lived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lived:
    version, more = request.param
    release, root = ZooKeeperRelease(version), tmp_path_factory.mktemp("endings")
    settings = {"preAllocSize": "64", "snapCount": "900", **more}
    with (
        EmbeddedZooKeeper(root, CACHE, release=release, settings=settings) as server,
        Load([server.client], server.password, line=release.line, seed=5) as load,
    ):
        load.wait_for(TRANSACTIONS)
    return Lived(directory_view(Member(name="a", data_dir=str(server.data_dir), role="standalone"), cold=True))


def _reported(found: History) -> Counter[Gone]:
    ended = (event for event in found.events if event.txn == "closeSession" and event.op == "delete")
    return Counter((event.zxid, event.path) for event in ended)


def _blind(found: History) -> list[tuple[int, int]]:
    named = (_BLIND.search(finding.what) for finding in found.findings if finding.code == "unseen-deletions")
    return [(int(match[1], 16), int(match[2], 16)) for match in named if match]


def test_with_all_logs_every_deletion_is_reported(lived: Lived) -> None:
    assert len(lived.view.logs) > 3
    assert len(lived.gone) > 50
    found = lived.asked(lived.view.logs)
    assert _reported(found) == lived.gone
    assert found.findings == ()


@pytest.mark.parametrize("without", [(0,), (0, 1), (1,), (0, 2), (1, 2)])
def test_without_some_logs_nothing_is_invented_and_unseen_ranges_are_named(
    lived: Lived, without: tuple[int, ...]
) -> None:
    logs = [log for number, log in enumerate(lived.view.logs) if number not in without]
    found = lived.asked(logs)
    reported, held = _reported(found), [(log.first, log.last) for log in logs]
    true = Counter({one: n for one, n in lived.gone.items() if any(a <= one[0] <= b for a, b in held)})
    assert not reported - true
    blind = _blind(found)
    assert all(any(a <= zxid <= b for a, b in blind) for zxid, _ in true - reported)
    assert len(reported) > len(true) // 2
