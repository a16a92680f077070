"""The cluster record of a backup: topics, groups, ACLs, quotas."""

import pytest
from msgspec.structs import replace as changed

from logkeep.errors import BackupFailed, Damaged
from logkeep.kafka.admin.groups import CommittedOffset
from logkeep.kafka.backup.record_builder import acls_of, groups_of, quotas_of, topics_of
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import ArchivedReach, ClusterRecord, check_consistent, reached_in, same_cluster
from logkeep.model.findings import Severity
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import LogCut
from logkeep.repository.chain.documents import seal, unseal
from tests.golden.test_kafka_record_golden import RECORD
from tests.support.kafka.cluster_values import ID, bounds, facts, topic

ORDERS = topic("orders", (1, 2))
FIRST, SECOND, ELSEWHERE = TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("gone", 0)
FACTS = facts(
    (ORDERS,),
    {FIRST: bounds(0, 10), SECOND: bounds(0, 5)},
    {FIRST: CommittedOffset(7, 3, "mine"), SECOND: CommittedOffset(9, -1, ""), ELSEWHERE: CommittedOffset(4, -1, "")},
)


def test_positions_above_the_cut_are_recorded_at_it_and_told() -> None:
    (group,), (finding,) = groups_of(FACTS)
    assert (group.name, group.kind, group.state, group.protocol_type) == ("billing", "classic", "Empty", "consumer")
    assert [(c.topic, c.partition, c.offset, c.committed) for c in group.commits] == [
        ("gone", 0, 4, 4),
        ("orders", 0, 7, 7),
        ("orders", 1, 5, 9),
    ]
    assert [(c.leader_epoch, c.metadata) for c in group.commits] == [(-1, ""), (3, "mine"), (-1, "")]
    assert (finding.code, finding.severity) == ("commit-clamped", Severity.NOTE)
    assert finding.where == "group billing, orders-1"
    assert "9" in finding.what
    assert "5" in finding.what


def test_topics_carry_what_makes_them_again() -> None:
    (found,) = topics_of(FACTS)
    assert (found.name, found.id, found.partitions, found.replication_factor) == ("orders", ID.hex, 2, 2)
    assert (found.internal, found.configs) == (False, {"retention.ms": "1000"})
    assert found.inherited == {"cleanup.policy": "compact"}


def test_no_authorizer_is_not_the_same_as_no_rules() -> None:
    assert acls_of(FACTS) is None
    assert quotas_of(FACTS) == ()


def test_the_next_backup_finds_where_this_one_ended() -> None:
    assert reached_in(RECORD) == {TopicPartition("orders", 0): ArchivedReach("0" * 31 + "a", 9, 3, start=2)}


def test_order_and_passing_states_make_no_difference() -> None:
    other = changed(RECORD, id=7, groups=tuple(changed(g, state="Stable") for g in reversed(RECORD.groups)))
    assert same_cluster(RECORD, other)


@pytest.mark.parametrize(
    "difference",
    [
        {"cluster_id": "another"},
        {"topics": tuple(changed(t, configs={}) for t in RECORD.topics)},
        {"logs": tuple(changed(r, start=3) for r in RECORD.logs)},
        {"logs": tuple(changed(r, last_stable=9) for r in RECORD.logs)},
        {"open_transactions": ()},
        {"groups": RECORD.groups[:1]},
        {"groups": tuple(changed(g, commits=()) for g in RECORD.groups)},
        {"acls": ()},
        {"acls": None},
        {"quotas": ()},
    ],
)
def test_everything_else_does(difference: dict[str, object]) -> None:
    assert not same_cluster(RECORD, changed(RECORD, **difference))


def test_no_rules_and_no_authorizer_differ() -> None:
    assert not same_cluster(changed(RECORD, acls=()), changed(RECORD, acls=None))


def test_a_record_comes_back_as_it_was_sealed() -> None:
    assert unseal(seal(RECORD), ClusterRecord, "record") == RECORD


@pytest.mark.parametrize("at", [20, 200, -80])
def test_a_record_with_a_changed_byte_does_not_open(at: int) -> None:
    data = bytearray(seal(RECORD))
    data[at] ^= 1
    with pytest.raises(Damaged):
        unseal(bytes(data), ClusterRecord, "record")


@pytest.mark.parametrize(
    "log",
    [
        LogName(Collection.TOPICS, "orders", "0" * 31 + "b", 0),
        LogName(Collection.TOPICS, "orders", "0" * 31 + "a", 1),
        LogName(Collection.TOPICS, "other", "0" * 31 + "a", 0),
    ],
)
def test_a_log_that_no_recorded_topic_has_is_refused(log: LogName) -> None:
    check_consistent(RECORD, [LogCut(LogName(Collection.TOPICS, "orders", "0" * 31 + "a-2", 0), 0, 9)])
    with pytest.raises(BackupFailed, match="no topic"):
        check_consistent(RECORD, [LogCut(log, 0, 9)])
