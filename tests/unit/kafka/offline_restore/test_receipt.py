"""An offline restore leaves a receipt in the repository: what, where, when, and that it was read back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import RestoreFailed, StoreDenied
from logkeep.kafka.offline_restore import run
from logkeep.kafka.offline_restore.receipt import KIND, OfflineBody
from logkeep.model.time import random_token, utc_now
from logkeep.repository.chain.commits import SourceRef
from logkeep.repository.restores import (
    RestoreState,
    RestoreVerdict,
    list_restores,
    newest_receipt,
    plan_body,
    read_plan,
    state_place,
)
from logkeep.store.base import ObjectMetadata
from tests.support.faults.store import FaultyStore
from tests.support.kafka.broker_disks import flip
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.offline_restore import Backed, backed_up, made_target, offline, tree, wished

LOGS = {"orders-0": [dense(0, 5).encode(), dense(5, 5).encode()], "orders-1": [dense(3, 4).encode()]}


@pytest.fixture
def backed(tmp_path: Path) -> Backed:
    return backed_up(tmp_path, LOGS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made_target(tmp_path / "data", [*LOGS])


def test_what_where_when_and_the_proof(backed: Backed, root: Path) -> None:
    report = offline(backed.place, backed.backup, [root])
    (row,) = list_restores(backed.place)
    assert (row.id, row.state, row.backup, row.drill) == (report.restore, RestoreState.PROVEN, backed.backup, False)
    plan, receipt = read_plan(backed.place, row.id), newest_receipt(backed.place, row.id)
    assert receipt is not None
    assert (plan.kind, plan.target, receipt.target) == (KIND, receipt.target, plan.target)
    assert (receipt.target.cluster_id, receipt.target.name) == (report.plan.cluster_id, str(root))
    assert [log.directory for log in plan_body(plan, OfflineBody).logs] == [f"{root}/orders-0", f"{root}/orders-1"]
    rows = [(p.topic, p.partition, p.mode, p.records, p.end, p.outcome) for p in receipt.partitions]
    assert rows == [("orders", 0, "preserve", 10, 10, "done"), ("orders", 1, "preserve", 4, 7, "done")]
    assert all(p.compared and p.archive_digest == p.target_digest for p in receipt.partitions)
    assert len({p.archive_digest for p in receipt.partitions}) == 2
    assert receipt.records_there
    assert receipt.rates["records_per_s"] > 0


def test_run_again_it_has_another_receipt_that_says_the_same(backed: Backed, root: Path) -> None:
    first, again = (offline(backed.place, backed.backup, [root]) for _ in range(2))
    assert [row.id for row in list_restores(backed.place)] == [first.restore, again.restore]
    one, two = (newest_receipt(backed.place, report.restore) for report in (first, again))
    assert one is not None
    assert two is not None
    assert one.partitions == two.partitions


def test_a_log_that_did_not_come_back(backed: Backed, root: Path, tmp_path: Path) -> None:
    (path,) = (tmp_path / "repository").rglob("partition=1/*.log")
    flip(path, path.stat().st_size - 1)
    report = offline(backed.place, backed.backup, [root])
    receipt = newest_receipt(backed.place, report.restore)
    assert receipt is not None
    assert (receipt.verdict, receipt.records_there) == (RestoreVerdict.FAILED, False)
    assert [(p.outcome, p.compared) for p in receipt.partitions] == [("done", True), ("failed", False)]
    assert [f.where for f in receipt.findings if f.code == "not-restored"] == ["orders-1"]


def test_a_disk_that_gives_up(backed: Backed, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise RestoreFailed("no room", subject="/disk")

    monkeypatch.setattr(run, "_restored", full)
    with pytest.raises(RestoreFailed):
        offline(backed.place, backed.backup, [root])
    (row,) = list_restores(backed.place)
    receipt = newest_receipt(backed.place, row.id)
    assert receipt is not None
    assert (receipt.verdict, [f.what for f in receipt.findings]) == (RestoreVerdict.FAILED, ["no room"])


def _written(place: SourceRef, backup: int, roots: Sequence[Path], state: SourceRef) -> None:
    run.restore_offline(wished(backup, roots), place, InlineEngine(), utc_now, random_token, state)


class _ReadOnly(FaultyStore):
    """Nothing may be put below restores/."""

    def put_new(self, name: str, data: bytes, metadata: ObjectMetadata | None = None) -> None:
        raise StoreDenied("not allowed", subject=name)


def test_a_repository_that_may_only_be_read(backed: Backed, root: Path, tmp_path: Path) -> None:
    """Refused before a file is touched; with a directory for such documents it is all the same."""
    before = tree(root)
    closed = SourceRef(_ReadOnly(backed.place.store), backed.place.repository, backed.place.source)
    with pytest.raises(StoreDenied, match="plan of the restore") as refused:
        _written(backed.place, backed.backup, [root], closed)
    assert "--state-dir" in refused.value.remedy
    assert tree(root) == before
    state = state_place(backed.place, tmp_path / "state", create=True)
    _written(backed.place, backed.backup, [root], state)
    assert list_restores(backed.place) == []
    assert [row.state for row in list_restores(state)] == [RestoreState.PROVEN]
