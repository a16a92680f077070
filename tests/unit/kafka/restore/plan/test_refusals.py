"""Names and targets that a restore refuses, all of them at once and by name."""

import pytest

from logkeep.errors import TargetUnsafe, UsageError
from logkeep.kafka.admin.offsets import LogBounds
from logkeep.kafka.record.documents import TopicRecord
from logkeep.kafka.restore.facts.target import TargetFacts, TargetTopic
from logkeep.kafka.restore.plan.refusals import refused_names, refused_targets


def _topics(*names: str, internal: bool = False) -> list[TopicRecord]:
    return [TopicRecord(name, "0" * 32, internal, 1, 1, {}) for name in names]


def _facts(*topics: TargetTopic, is_source: bool = False) -> TargetFacts:
    return TargetFacts("here", is_source, (1,), frozenset(t.name for t in topics), {t.name: t for t in topics})


def _topic(name: str, *ends: tuple[int, int]) -> TargetTopic:
    return TargetTopic(name, "0" * 32, False, tuple(LogBounds(start, end, end, 0) for start, end in ends))


@pytest.mark.parametrize(
    ("renamed", "said"),
    [
        ({"a": "a b"}, "invalid in Kafka"),
        ({"a": ".."}, "invalid in Kafka"),
        ({"a": ""}, "invalid in Kafka"),
        ({"a": "x" * 250}, "invalid in Kafka"),
        ({"a": "b"}, "one topic"),
        ({"a": "x.y", "b": "x_y"}, "dots and underscores"),
        ({"a": "pre_sent"}, "dots and underscores"),
        ({"a": "__consumer_offsets"}, "internal"),
    ],
)
def test_names(renamed: dict[str, str], said: str) -> None:
    (error,) = refused_names(_topics("a", "b"), renamed, {"pre.sent", "old.one", "old_one"})
    assert isinstance(error, UsageError)
    assert said in error.what


def test_good_names_and_internal_topics() -> None:
    assert refused_names(_topics("a", "b"), {"a": "b", "b": "a"}, {"a", "b"}) == []
    assert [e.subject for e in refused_names(_topics("kept", internal=True), {}, ())] == ["kept"]
    both = refused_names(_topics("a", "b", "c"), {"a": "?", "b": "c"}, ())
    assert [e.subject for e in both] == ["?", "c"]


def test_topics_with_records_are_never_written_to_by_accident() -> None:
    facts = _facts(_topic("full", (0, 5), (3, 3)), _topic("bare", (0, 0)))
    needed = {"full": 2, "bare": 1, "new": 9}
    filled, existing = refused_targets(facts, needed, into_existing=False, append=False, preserve=False)
    assert (filled.exit_code, existing.exit_code) == (31, 31)
    assert (filled.subject, existing.subject) == ("full (5 records)", "bare")
    assert "--rename" in filled.remedy
    assert "--into-existing" in existing.remedy
    (filled,) = refused_targets(facts, needed, into_existing=True, append=False, preserve=False)
    assert filled.subject == "full (5 records)"
    assert refused_targets(facts, needed, into_existing=True, append=True, preserve=False) == []
    (filled,) = refused_targets(facts, needed, into_existing=True, append=True, preserve=True)
    assert filled.subject == "full (5 records)"


def test_an_emptied_topic_cannot_keep_offsets() -> None:
    facts = _facts(_topic("emptied", (7, 7)))
    (error,) = refused_targets(facts, {"emptied": 1}, into_existing=True, append=False, preserve=True)
    assert error.subject == "emptied (emptied)"
    assert refused_targets(facts, {"emptied": 1}, into_existing=True, append=False, preserve=False) == []


def test_fewer_partitions_than_needed() -> None:
    facts = _facts(_topic("narrow", (0, 0), (0, 0)))
    (error,) = refused_targets(facts, {"narrow": 3}, into_existing=True, append=False, preserve=True)
    assert isinstance(error, TargetUnsafe)
    assert error.what == "it has 2 partitions, and 3 are needed"
