"""Which topics belong together, and which restores tear them apart."""

from logkeep.cli.terminal.text import TerminalStyle
from logkeep.cli.verbs.kafka.info import set_lines
from logkeep.kafka.record.documents import CommitRecord, GroupRecord, TopicRecord
from logkeep.kafka.record.topic_sets import CONNECT, STREAMS, TopicSet, topic_sets, torn_sets

_COMPACT = {"cleanup.policy": "compact"}


def _topic(name: str, configs: dict[str, str] | None = None) -> TopicRecord:
    return TopicRecord(name, "0" * 32, False, 1, 1, configs or {})


def _group(name: str, *topics: str) -> GroupRecord:
    return GroupRecord(name, "classic", "Empty", "consumer", tuple(CommitRecord(t, 0, 1, 1, -1, "") for t in topics))


_CONNECT = [_topic(f"connect-{role}", _COMPACT) for role in ("configs", "offsets", "status")]
_APP = [_topic("shop-totals-changelog", _COMPACT), _topic("shop-by-customer-repartition")]


def test_a_connect_cluster_with_its_sinks() -> None:
    groups = [_group("connect-to-s3", "orders"), _group("connect-cluster"), _group("billing", "orders")]
    assert topic_sets([*_CONNECT, _topic("orders")], groups) == (
        TopicSet(
            kind=CONNECT,
            name="connect",
            topics=("connect-configs", "connect-offsets", "connect-status"),
            inputs=("orders",),
            groups=("connect-to-s3",),
        ),
    )


def test_other_names_of_connects_topics_need_all_three() -> None:
    named = [_topic(f"dwh_{role}", _COMPACT) for role in ("config", "offsets", "status")]
    assert [s.name for s in topic_sets(named, ())] == ["dwh"]
    assert topic_sets(named[:2], ()) == ()
    assert topic_sets([_topic(f"dwh_{role}") for role in ("config", "offsets", "status")], ()) == (), "not compacted"
    (part,) = topic_sets(_CONNECT[:1], ())
    assert part.missing == ("connect-offsets", "connect-status")
    assert topic_sets([TopicRecord("__consumer_offsets", "0" * 32, True, 50, 1, _COMPACT)], ()) == ()


def test_streams_applications_by_their_groups() -> None:
    groups = [_group("shop", "orders", "shop-by-customer-repartition"), _group("sho", "orders")]
    (found,) = topic_sets([*_APP, _topic("orders"), _topic("other")], groups)
    assert (found.kind, found.name, found.groups) == (STREAMS, "shop", ("shop",))
    assert found.topics == ("shop-by-customer-repartition", "shop-totals-changelog")
    assert (found.inputs, found.missing) == (("orders",), ())
    (alone,) = topic_sets([_topic("app-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog")], ())
    assert (alone.name, alone.groups) == ("app", ())
    assert topic_sets([_topic("notes-changelog")], ()) == ()


def test_a_restore_of_a_part_warns_and_names_the_rest() -> None:
    sets = topic_sets([*_CONNECT, *_APP, _topic("orders")], [_group("shop", "orders"), _group("connect-x", "orders")])
    every = {t for each in sets for t in (*each.topics, *each.inputs)}
    assert torn_sets(sets, every, ["shop"]) == []
    assert torn_sets(sets, ["other"], []) == []
    assert torn_sets(sets, ["orders"], ["connect-x"]) == [], "the positions of a sink are those of any group"
    (without_state,) = torn_sets(sets, ["orders"], ["shop"])
    assert "shop-by-customer-repartition, shop-totals-changelog" in without_state.what
    connect, streams = torn_sets(sets, ["connect-offsets", "shop-totals-changelog", "orders"], [])
    assert (connect.where, streams.where) == ("Kafka Connect cluster connect", "Kafka Streams application shop")
    assert connect.what.endswith("these are not restored: connect-configs, connect-status")


def test_info_shows_them() -> None:
    sets = topic_sets([*_CONNECT[:2], _topic("orders")], [_group("connect-x", "orders")])
    text = "\n".join(set_lines(sets, TerminalStyle(width=200)))
    assert "kafka-connect connect: connect-configs, connect-offsets; reads orders; not in this backup" in text
    assert [*set_lines((), TerminalStyle())] == []
