"""Groups of an earlier time: kinds, topics that were created again, and offsets that had been erased."""

import msgspec

from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.group_history.values import ArchivedPosition
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.plan.group_offsets import UnchangedLog
from logkeep.kafka.restore.plan.groups import plan_groups, rows_of, with_foreign
from logkeep.kafka.restore.plan.past_groups import past_groups

_ID, _OTHER = "a" * 32, "b" * 32
_TOPICS = [TopicRecord("orders", _ID, False, 1, 1, {})]
_ONE = ArchivedPosition(
    group="billing", topic="orders", partition=0, topic_id=_ID, offset=7, leader_epoch=3, metadata="m",
    committed_ms=1, record_offset=0,
)  # fmt: skip
LOG = TopicPartition("orders", 0)


def _with(**changes: object) -> ArchivedPosition:
    return msgspec.structs.replace(_ONE, **changes)


def test_kinds_and_offsets() -> None:
    positions = [_ONE, _with(group="pickers", share=True), _with(group="older", topic_id="")]
    found = past_groups(positions, _TOPICS, {"billing": "consumer", "older": "share"})
    assert [(g.name, g.kind) for g in found.groups] == [
        ("billing", "consumer"),
        ("older", "classic"),
        ("pickers", "share"),
    ]
    assert [(c.offset, c.committed, c.metadata) for g in found.groups for c in g.commits] == [(7, 7, "m")] * 3
    assert found.foreign == ()


def test_an_offset_for_another_topic_of_the_same_name_is_left_out_and_reported() -> None:
    found = past_groups([_with(topic_id=_OTHER), _with(group="audit")], _TOPICS, {})
    routes = {LOG: [UnchangedLog(LOG, 0, 10)]}
    plan = with_foreign(plan_groups(found.groups, routes, (), {}), found.foreign, ())
    assert [g.name for g in plan.groups] == ["audit"]
    rows = {row.group: (row.offset, row.exact, row.detail) for row in rows_of(plan)}
    assert rows["billing"] == (None, False, "it was committed for another topic of the same name")
    assert with_foreign(plan, found.foreign, ["aud.*"]).foreign == ()


def test_erased_offsets_are_none() -> None:
    (found,) = past_groups([_with(erased_ms=5)], _TOPICS, {}).groups
    assert (found.name, found.commits) == ("billing", ())
