"""A transactional client that commits while log ends are read: its output and its offset belong together."""

from collections.abc import Collection, Iterable
from uuid import UUID

import pytest

from logkeep.kafka.admin.groups import CommittedOffset, Group
from logkeep.kafka.admin.offsets import LogBounds, ProducerState
from logkeep.kafka.backup import log_ends, transaction_activity
from logkeep.kafka.backup.log_ends import LogEnds, read_log_ends
from logkeep.kafka.client.topology import ClusterMetadata, Partition, Topic, TopicPartition

FIRST, SECOND, OUT = TopicPartition("in", 0), TopicPartition("in", 1), TopicPartition("out", 0)
POSITIONS = TopicPartition("__consumer_offsets", 0)
COPIER = Group("copier", "classic", "Stable", "consumer")
METADATA = ClusterMetadata("c", (), (Topic("__consumer_offsets", UUID(int=1), True, (Partition(0, 1, 0, (1,)),)),))


class Moving:
    """A cluster in which one transaction is committed while ends are read for the first time."""

    def __init__(self, before: dict[TopicPartition, int], after: dict[TopicPartition, int], *, new: bool) -> None:
        self.positions, self.new, self.moved = (before, after), new, False

    def groups(self, _cluster: object) -> tuple[Group, ...]:
        return (COPIER,) if self.moved or not self.new else ()

    def offsets(
        self, _cluster: object, names: Iterable[str], *, topics: Collection[str]
    ) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        now = {log: offset for log, offset in self.positions[self.moved].items() if log.topic in topics}
        return {name: {log: CommittedOffset(offset, 0, "") for log, offset in now.items()} for name in names}

    def producers(self, _cluster: object, logs: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[object, ...]]:
        state = ProducerState(1, 0, int(self.moved), 0, -1)
        return {log: (state,) if log in (OUT, POSITIONS) else () for log in logs}

    def bounds(self, _cluster: object, logs: Iterable[TopicPartition]) -> dict[TopicPartition, LogBounds]:
        self.moved, was = True, self.moved
        ends = {FIRST: 100, SECOND: 70 if was else 50, OUT: 72 if was else 6}
        if not was:
            ends[OUT] = 72  # read last: the output is there already
        return {log: LogBounds(0, ends[log], ends[log], 0) for log in logs}

    def read(self, monkeypatch: pytest.MonkeyPatch) -> LogEnds:
        for module in (log_ends, transaction_activity):
            for name, value in (
                ("list_groups", self.groups),
                ("group_offsets", self.offsets),
                ("describe_producers", self.producers),
                ("log_bounds", self.bounds),
                ("share_group_offsets", lambda _c, _n, **_k: {}),
                ("list_transactions", lambda _c, **_k: ()),
                ("groups_with_pending_commits", lambda _c, _n, **_k: set()),
            ):
                monkeypatch.setattr(module, name, value, raising=False)
        return read_log_ends(None, METADATA, [FIRST, SECOND, OUT], lambda _s: None)  # type: ignore[arg-type]  # all is scripted


@pytest.mark.parametrize("new", [False, True])
@pytest.mark.parametrize("before", [{FIRST: 5}, {}])
def test_positions_are_those_that_belong_to_the_output(
    monkeypatch: pytest.MonkeyPatch, before: dict[TopicPartition, int], new: bool
) -> None:
    """Also when it is the first position of the group, in a log that is new to it, or the group itself is new."""
    found = Moving(before, {FIRST: 10, SECOND: 60}, new=new).read(monkeypatch)
    assert found.stable
    (group,) = found.groups
    assert {log: c.offset for log, c in group.commits.items()} == {FIRST: 10, SECOND: 60}
    assert found.bounds[SECOND].high_watermark == 70, "not clamped to an end that was read before"
