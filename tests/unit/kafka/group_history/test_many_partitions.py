"""Listing what many partitions hold: no more rows are in memory than are listed."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from logkeep.engine.inline import InlineEngine
from logkeep.errors import UsageError
from logkeep.kafka.group_history import run
from logkeep.kafka.group_history.answers import GroupQuestion
from logkeep.kafka.group_history.run import ArchivedGroups
from logkeep.kafka.record.documents import ClusterRecord
from logkeep.repository.backups.manifest import LogCut, Manifest
from tests.support.kafka.offsets_log import LOG, Event, place, stored

_MOST = 12


class _Counting(InlineEngine):
    """How many rows each call of it returned."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[int] = []

    def map(self, task: Any, units: Sequence[Any], result: Any, *, label: str, weight: Callable[[Any], int]) -> Any:
        found = super().map(task, units, result, label=label, weight=weight)
        self.rows.append(sum(len(getattr(each, "commits", ()) or getattr(each, "records", ())) for each in found))
        return found


def _groups(engine: _Counting, *commits: int) -> ArchivedGroups:
    """One partition for each number of commits."""
    where = place()
    logs = [msgspec.structs.replace(LOG, partition=number) for number in range(len(commits))]
    cut = tuple(LogCut(log, 0, count) for log, count in zip(logs, commits, strict=True))
    segments = {
        log: stored(
            where, [(n, Event(100 + n, f"g{log.partition}", n).encode(n)) for n in range(count)], count, log=log
        )
        for log, count in zip(logs, commits, strict=True)
    }
    manifest = Manifest(
        repository="0" * 32,
        source="prod",
        id=1,
        kind="kafka",
        run="0" * 16,
        identity={},
        started="",
        finished="",
        base=None,
        parts=(),
        cut=cut,
    )
    record = ClusterRecord(
        repository="0" * 32,
        source="prod",
        id=1,
        cluster_id="c",
        logs=(),
        topics=(),
        open_transactions=(),
        groups=(),
        acls=None,
        quotas=(),
    )
    return ArchivedGroups(where, manifest, record, (), segments, {}, lambda _: engine)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MOST_ROWS", _MOST)


def test_a_partition_with_more_than_its_share_is_read_again() -> None:
    engine = _Counting()
    found = _groups(engine, 2, 5, 0, 4).history(GroupQuestion())
    assert [(c.group, c.offset) for c in found.commits if c.group == "g1"] == [("g1", n) for n in range(5)]
    assert len(found.commits) == 11
    assert max(engine.rows) <= _MOST


@pytest.mark.parametrize("ask", [ArchivedGroups.history, ArchivedGroups.raw])
def test_too_many_are_refused_before_they_are_held(ask: Callable[[ArchivedGroups, GroupQuestion], object]) -> None:
    engine = _Counting()
    with pytest.raises(UsageError, match="there are 48"):
        ask(_groups(engine, 12, 12, 12, 12), GroupQuestion())
    assert max(engine.rows) <= _MOST
