"""Which logs of a backup come back, under which names and up to where."""

import pytest

from logkeep.errors import UsageError
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.record.documents import ClusterRecord, TopicRecord
from logkeep.kafka.restore.plan.selection import Rename, RestoreSelection, select_logs
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import LogCut

TOPICS = (("orders", 3), ("prod.payments", 2), ("audit", 1), ("__consumer_offsets", 2))


def _topic(name: str, partitions: int) -> TopicRecord:
    return TopicRecord(name, name.encode().hex(), name.startswith("__"), partitions, 1, {})


RECORD = ClusterRecord(
    repository="r",
    source="s",
    id=1,
    cluster_id="c",
    topics=tuple(_topic(*each) for each in TOPICS),
    logs=(),
    open_transactions=(),
    groups=(),
    acls=None,
    quotas=(),
)
CUT = tuple(
    LogCut(LogName(Collection.TOPICS, name, name.encode().hex(), p), 10, 100)
    for name, partitions in TOPICS
    for p in range(partitions)
)


def _chosen(**named: tuple[str, ...]) -> list[tuple[str, str, int]]:
    found = select_logs(RECORD, CUT, RestoreSelection(**named))  # type: ignore[arg-type]  # names of tuples alone
    return [(str(log.source), str(log.target), log.end) for log in found.logs]


def test_all_but_internal_topics_come_back_under_their_names() -> None:
    found = select_logs(RECORD, CUT, RestoreSelection())
    assert [t.name for t, _ in found.topics] == ["orders", "prod.payments", "audit"]
    assert [log.target for log in found.logs] == [
        *(TopicPartition("orders", p) for p in range(3)),
        *(TopicPartition("prod.payments", p) for p in range(2)),
        TopicPartition("audit", 0),
    ]
    assert {(log.start, log.end) for log in found.logs} == {(10, 100)}
    assert found.internal == ("__consumer_offsets",)


def test_patterns_match_whole_names_and_exclude_wins() -> None:
    assert _chosen(include=("order.*", "audit"), exclude=("orders",)) == [("audit-0", "audit-0", 100)]
    with pytest.raises(UsageError, match="no topic of the backup matches order"):
        _chosen(include=("order",))


def test_the_first_renaming_that_fits_is_taken() -> None:
    found = _chosen(include=("prod.*", "audit"), renames=(r"s/^prod\.(.*)/dr.\1/", "audit=log", "audit=never"))
    assert found == [
        ("prod.payments-0", "dr.payments-0", 100),
        ("prod.payments-1", "dr.payments-1", 100),
        ("audit-0", "log-0", 100),
    ]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("a=b", "a", "b"),
        ("a=b", "aa", None),
        ("s,x,y,", "axb", "ayb"),
        ("s/x/y/", "ab", None),
        ("s/x/y/", "xx", "yx"),
        ("s/.*/all/", "ab", "all"),
        ("s/$/-new/", "ab", "ab-new"),
        (r"a=b\1", "a", r"b\1"),
        ("s=x", "s", "x"),
        ("shop=b", "shop", "b"),
    ],
)
def test_renamings(text: str, name: str, expected: str | None) -> None:
    assert Rename.parse(text)(name) == expected


@pytest.mark.parametrize("text", ["a", "=b", "a=", "s/x/y", "s/x/y/g", "s/(/y/", ""])
def test_what_is_no_renaming_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Rename.parse(text)


def test_a_replacement_that_names_no_group_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot replace"):
        Rename.parse(r"s/a/\3/")("a")


def test_two_topics_cannot_become_one_nor_illegal() -> None:
    with pytest.raises(UsageError, match="orders and audit would both become x"):
        _chosen(renames=("orders=x", "audit=x"))
    with pytest.raises(UsageError, match=r"both become a\.b"):
        _chosen(renames=("orders=a_b", "audit=a.b"))
    with pytest.raises(UsageError, match="not a valid topic name"):
        _chosen(renames=("orders=a b",))


def test_partitions_of_all_or_of_one_topic() -> None:
    assert [s for s, _, _ in _chosen(partitions=("1-2",))] == ["orders-1", "orders-2", "prod.payments-1"]
    assert [s for s, _, _ in _chosen(partitions=("orders:0,2", "1"))] == ["orders-0", "orders-2", "prod.payments-1"]
    for wrong in ("x", "orders:", "nobody:1", "1-", "-1"):
        with pytest.raises(UsageError):
            _chosen(partitions=(wrong,))


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("77",), "no topic has partition 77"),
        (("orders:0,7",), "orders has no partition 7"),
        (("orders:0", "orders:5-9"), "orders has no partition 5-9"),
        (("orders:0", "2"), "no topic has partition 2"),
        (("5-3",), "5-3 ends before it begins"),
    ],
)
def test_a_partition_that_is_not_there_is_named_also_beside_others(texts: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        _chosen(partitions=texts)


def test_a_range_may_reach_further_than_a_topic_has_partitions() -> None:
    assert [s for s, _, _ in _chosen(partitions=("orders:1-99",))] == ["orders-1", "orders-2"]


def test_a_pattern_without_a_topic_is_named_also_beside_others() -> None:
    with pytest.raises(UsageError, match=r"no topic of the backup matches nosuch$"):
        _chosen(include=("orders", "nosuch"))
    assert select_logs(RECORD, CUT, RestoreSelection(include=("audit", "__.*"))).internal == ("__consumer_offsets",)
    standing = select_logs(RECORD, CUT, RestoreSelection(include=("audit", "nosuch"), configured=True))
    assert [t.name for t, _ in standing.topics] == ["audit"], "a configuration is written for backups too"


def test_an_earlier_end_of_one_partition() -> None:
    found = _chosen(include=("orders",), until_offsets=("orders:1=42",))
    assert [end for _, _, end in found] == [100, 42, 100]
    for wrong in ("orders:1=9", "orders:1=101", "orders:7=50", "audit:0=50", "orders=5", "orders:1"):
        with pytest.raises(UsageError):
            _chosen(include=("orders",), until_offsets=(wrong,))
    with pytest.raises(UsageError, match="not among the partitions"):
        _chosen(partitions=("0",), until_offsets=("orders:1=50",))


def test_a_renaming_that_fits_nothing_is_a_slip_of_the_pen() -> None:
    with pytest.raises(UsageError, match="matches none of the topics"):
        _chosen(include=("orders",), renames=("audit=x",))
