"""Where an export continues, what it refuses, and when deletions of a compacted topic may be missing."""

from dataclasses import replace

import msgspec
import pytest

from logkeep.errors import FormatTooNew, TargetUnsafe, UsageError
from logkeep.kafka.datasets.deletion_rule import judge_export
from logkeep.kafka.datasets.documents import begun_document, joined_document, read_document, with_topics
from logkeep.kafka.datasets.formats import DatasetEnd
from logkeep.kafka.datasets.plan import (
    UNIT_BYTES,
    divide_into_units,
    plan_export,
    refuse_other_dataset,
    refuse_other_histories,
    refuse_unknown_rewrites,
    same_history,
)
from logkeep.kafka.datasets.target import DatasetTarget
from logkeep.kafka.datasets.values import ExportableLog, ExportableLogs, ExportedLog, LogToExport
from logkeep.kafka.logs.read_times import ReadTimes
from logkeep.kafka.record.dataset_document import DatasetDocument, DatasetLog, NotedLog
from logkeep.kafka.record.dataset_version import DOCUMENT
from logkeep.kafka.record.deletion_times import DeletionTimes
from logkeep.kafka.record.documents import CommitRecord, GroupRecord, TopicRecord
from logkeep.model.clock_time import ClockName, ClockTime
from logkeep.model.ranges import Range
from logkeep.store.memory import MemoryStore

ID = "a" * 32
LOG = DatasetLog("t", 0)
DAY_MS = 86_400_000
TOPIC = TopicRecord("t", ID, False, 1, 1, {"cleanup.policy": "compact"})
WANTED = DatasetDocument(format="kafka-backup-v1", isolation="committed", cluster_id="c")


def facts(start: int, end: int, *, live: bool = True, log: DatasetLog = LOG, **more: object) -> ExportableLogs:
    source = ExportableLog(log, ID, start, end, **more)  # type: ignore[arg-type]  # a test's own values
    return ExportableLogs("c", live, (TOPIC,), (source,), (), cut=ClockTime(10 * DAY_MS, ClockName.BROKER))


def planned(source: ExportableLogs, last: int | None, note: NotedLog | None = None) -> LogToExport:
    end = DatasetEnd(joined=True, last=last)
    (found,) = plan_export(source, {LOG: end}, {LOG: note} if note is not None else {}, "url").logs
    return found


def note(last: int, covered: int, **more: object) -> NotedLog:
    return NotedLog(topic="t", partition=0, history=ID, last=last, covered=covered, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("last", "noted", "start"),
    [
        (None, None, 5),
        (9, None, 10),
        (9, note(9, 14), 14),  # offsets without a visible record are known to be exported
        (9, note(12, 14), 10),  # the dataset ends earlier than the document says: only its own record counts
        (None, note(-1, 7), 7),
        (19, note(19, 20), 20),
    ],
)
def test_where_a_log_is_continued(last: int | None, noted: NotedLog | None, start: int) -> None:
    found = planned(facts(5, 20), last, noted)
    assert (found.start, found.hole, found.offsets) == (start, None, 20 - start)


def test_a_hole_is_named_and_skipped() -> None:
    found = planned(facts(15, 20), 9)
    assert (found.hole, found.start) == (Range(10, 15), 15)
    assert planned(facts(15, 20), 9, note(9, 15)).hole is None
    assert planned(facts(15, 20), 9, note(8, 15)).hole == Range(10, 15)


def test_a_log_that_lost_its_end_is_refused_and_an_older_backup_has_nothing_new() -> None:
    with pytest.raises(TargetUnsafe, match="lost its end"):
        planned(facts(0, 20), 25)
    assert planned(facts(0, 20, live=False), 25).offsets == 0


def test_other_datasets_are_refused() -> None:
    for other in ({"format": "avro"}, {"schema": "x"}, {"isolation": "all"}, {"cluster_id": "d"}):
        with pytest.raises(TargetUnsafe):
            refuse_other_dataset(msgspec.structs.replace(WANTED, **other), WANTED, "url")
    refuse_other_dataset(WANTED, WANTED, "url")


def test_other_histories_are_refused_unless_they_are_rewritten() -> None:
    document = begun_document(None, WANTED, facts(0, 1), [planned(facts(0, 1), None)])
    other = facts(0, 1)
    other = replace(other, logs=(replace(other.logs[0], history="b" * 32),))
    with pytest.raises(TargetUnsafe):
        refuse_other_histories(document, other, (), "url")
    refuse_other_histories(document, other, ("t",), "url")
    with pytest.raises(UsageError):
        refuse_other_histories(None, facts(0, 1, log=DatasetLog(".logkeep", 0)), (), "url")
    with pytest.raises(UsageError):
        refuse_unknown_rewrites(("x",), ("t",))


@pytest.mark.parametrize(
    ("noted", "noted_by_backup", "found", "found_in_backup", "same"),
    [
        (ID, False, ID, False, True),
        (ID, False, f"{ID}-2", True, True),  # a cluster knows only the topic id
        (f"{ID}-2", True, ID, False, True),
        (ID, True, f"{ID}-2", True, False),  # the log lost its end and grew again
        (f"{ID}-1", True, f"{ID}-2", True, False),
        (f"{ID}-1", False, f"{ID}-2", True, False),
        (f"{ID}-2", True, f"{ID}-2", True, True),
        (ID, False, f"{'b' * 32}-1", True, False),
    ],
)
def test_two_backups_name_whole_histories(
    noted: str, noted_by_backup: bool, found: str, found_in_backup: bool, same: bool
) -> None:
    known = NotedLog(topic="t", partition=0, history=noted, archived=noted_by_backup)
    source = ExportableLog(LOG, found, 0, 1, broker=-1 if found_in_backup else 1)
    assert same_history(known, source) is same


def test_documents_of_later_releases_and_other_files() -> None:
    target = DatasetTarget(MemoryStore())
    target.put(DOCUMENT, b'{"type":"logkeep-dataset","version":2}')
    with pytest.raises(FormatTooNew):
        read_document(target)
    for bad in (b"", b"[]", b"{}", b'{"type":"other"}', b"\xff"):
        target.put(DOCUMENT, bad)
        with pytest.raises(TargetUnsafe):
            read_document(target)


def test_a_document_keeps_what_it_knows_of_other_topics() -> None:
    old_group = GroupRecord("g", "consumer", "", "", (CommitRecord("other", 0, 5, 5, -1, "m"),))
    old = DatasetDocument(
        format="kafka-backup-v1",
        isolation="committed",
        cluster_id="c",
        topics=(TopicRecord("other", "c" * 32, False, 1, 1, {}),),
        logs=(NotedLog(topic="other", partition=0, history="c" * 32, last=3, covered=4),),
        groups=(old_group,),
    )
    now = replace(facts(0, 9), groups=(GroupRecord("g", "consumer", "", "", (CommitRecord("t", 0, 2, 2, -1, ""),)),))
    found = joined_document(old, WANTED, now, [note(8, 9)])
    assert [t.name for t in found.topics] == ["other", "t"]
    assert [each.log for each in found.logs] == [DatasetLog("other", 0), LOG]
    assert [c.topic for c in found.groups[0].commits] == ["other", "t"]


def test_commits_in_other_topics_are_left_out_and_none_is_there_twice() -> None:
    def groups(offset: int) -> tuple[GroupRecord, ...]:
        commits = [CommitRecord(topic, 0, offset, offset, -1, "") for topic in ("other", "t")]
        only = GroupRecord("only-other", "consumer", "", "", (commits[0],))
        return GroupRecord("g", "consumer", "", "", tuple(commits)), only

    document = WANTED
    for offset in (1, 2, 3):
        document = joined_document(document, WANTED, replace(facts(0, 9), groups=groups(offset)), [note(8, 9)])
    assert [(g.name, [(c.topic, c.offset) for c in g.commits]) for g in document.groups] == [("g", [("t", 3)])]
    doubled = msgspec.structs.replace(document.groups[0], commits=groups(4)[0].commits + groups(5)[0].commits)
    document = msgspec.structs.replace(document, groups=(doubled,))
    document = joined_document(document, WANTED, replace(facts(0, 9), groups=groups(6)), [note(8, 9)])
    assert [(c.topic, c.offset) for c in document.groups[0].commits] == [("other", 5), ("t", 6)]


@pytest.mark.parametrize("again", [True, False])
def test_whose_configs_are_known_follows_the_source_of_a_topic(again: bool) -> None:
    """A salvage or an import does not know what is set on the brokers."""
    cluster, import_ = (replace(facts(0, 9, live=live), configs_known=live) for live in (True, False))
    log = planned(cluster, None)
    begun = begun_document(None, WANTED, cluster, [log])
    assert begun.topics_of_known_configs == {"t"}
    assert begun_document(begun, WANTED, import_, [log]).topics_of_known_configs == {"t"}
    done = joined_document(begun, WANTED, import_, [note(8, 9)])
    assert done.topics_of_known_configs == frozenset()
    other = msgspec.structs.replace(done, configs_known=("other",))
    joined = joined_document(other, WANTED, cluster if again else import_, [note(8, 9)])
    assert joined.topics_of_known_configs == ({"other", "t"} if again else {"other"})
    assert with_topics(other, joined, {"t"}).topics_of_known_configs == joined.topics_of_known_configs
    assert with_topics(joined, other, {"t"}).topics_of_known_configs == {"other"}


def test_in_documents_of_earlier_releases_the_time_of_a_cut_shows_a_cluster() -> None:
    logs = (
        note(8, 9, deletions=_cut(5)),
        NotedLog(topic="both", partition=0, history=ID, deletions=_cut(5)),
        NotedLog(topic="both", partition=1, history=ID),
        NotedLog(topic="unproven", partition=0, history=ID, deletions=_cut(0, unproven=(0, 9))),
        NotedLog(topic="backup", partition=0, history=ID),
    )
    old = msgspec.structs.replace(WANTED, logs=logs)
    encoded = msgspec.json.encode(old)
    assert b"configs_known" not in encoded
    assert msgspec.json.decode(encoded, type=DatasetDocument).topics_of_known_configs == {"t"}
    none = msgspec.structs.replace(old, configs_known=())
    assert msgspec.json.decode(msgspec.json.encode(none), type=DatasetDocument).topics_of_known_configs == frozenset()


def _done(*, dense: bool = False, end_ms: int = 10 * DAY_MS) -> ExportedLog:
    times = ReadTimes(10 * DAY_MS, end_ms, ClockName.BROKER)
    return ExportedLog(topic="t", partition=0, records=1, written_bytes=1, files=1, last=19, dense=dense, times=times)


def _cut(ms: int, unproven: tuple[int, int] = (-1, -1)) -> DeletionTimes:
    first, after = unproven
    return DeletionTimes(cut_ms=ms, clock=ClockName.BROKER, retention_ms=DAY_MS, unproven_from=first, unproven_to=after)


def why(done: ExportedLog, known: DeletionTimes | None, topic: TopicRecord = TOPIC) -> str:
    source = replace(facts(0, 20), topics=(topic,))
    base = note(9, 10, deletions=known) if known is not None else None
    return judge_export(planned(source, 9 if base else None, base), done, base, source, topic).why


def test_deletions_are_proven_by_time_or_because_no_offset_is_missing() -> None:
    assert not why(_done(), _cut(10 * DAY_MS - DAY_MS // 2))
    assert why(_done(), _cut(9 * DAY_MS - 1))
    assert not why(_done(dense=True), _cut(0))
    assert not why(_done(), None), "the first copy took less time than tombstones stay"
    assert why(_done(end_ms=11 * DAY_MS), None)
    assert not why(_done(), _cut(0), TopicRecord("t", ID, False, 1, 1, {"cleanup.policy": "delete"}))
    shorter = TopicRecord("t", ID, False, 1, 1, {"cleanup.policy": "compact", "delete.retention.ms": "100"})
    assert why(_done(), _cut(10 * DAY_MS - 50), shorter).startswith("50 ms passed since the last cut, ")
    assert "for 100 ms (delete.retention.ms), of which 60000 ms are left as a margin" in why(_done(), None, shorter)
    assert why(_done(), None, shorter).startswith("0 ms passed since the first record was read, ")


def judged(noted: NotedLog | None, last: int, done: ExportedLog | None = None) -> str:
    source = facts(0, 20)
    found = planned(source, last if last >= 0 else None, noted)
    return judge_export(found, done, noted, source, TOPIC).why


def test_the_time_of_the_last_cut_says_nothing_of_records_that_were_removed_since() -> None:
    """A tombstone at 15 was in the lost file, and the cleaner has removed it since: the dataset keeps its key."""
    a_minute_ago = note(19, 20, deletions=_cut(10 * DAY_MS - 60_000))
    assert judged(a_minute_ago, 9, _done()).startswith("the dataset lost its records after offset 9; ")
    assert judged(a_minute_ago, 9, _done(dense=True)) == ""
    assert judged(a_minute_ago, -1, _done()) == "", "it holds no key"
    source = facts(0, 20)
    begun = begun_document(document_of(a_minute_ago), WANTED, source, [planned(source, 9, a_minute_ago)]).noted[LOG]
    assert judged(begun, 15, _done(dense=True)) == "an earlier run left them unproven", "it was killed at 15"


def test_what_a_killed_run_read_is_judged_by_the_next_one() -> None:
    """It may have had holes, whatever the rest has."""
    for dense in (False, True):
        assert judged(note(4, 5, deletions=_cut(10 * DAY_MS - 60_000)), 15, _done(dense=dense)) == ""
        assert judged(note(4, 5, deletions=_cut(8 * DAY_MS)), 15, _done(dense=dense)).startswith("172800000 ms passed")
    assert judged(note(4, 5, deletions=_cut(8 * DAY_MS)), 19).startswith("172800000 ms passed"), "it read everything"
    assert judged(note(4, 5, deletions=_cut(10 * DAY_MS - 60_000)), 19) == ""


def test_a_first_copy_begins_with_the_run_that_was_killed() -> None:
    first = replace(facts(0, 20), cut=ClockTime(8 * DAY_MS, ClockName.BROKER))
    begun = begun_document(None, WANTED, first, [planned(first, None)]).noted[LOG]
    assert judged(begun, 15, _done(dense=True)).startswith("172800000 ms passed since the last cut")
    assert judged(begun, -1, _done()) == "", "it was killed before the first record"
    source = facts(0, 20)
    again = begun_document(document_of(begun), WANTED, source, [planned(source, None, begun)]).noted[LOG]
    assert judged(again, 15, _done()) == ""
    assert judged(note(-1, -1), 15, _done()) != "", "an earlier release began it"


def document_of(*logs: NotedLog) -> DatasetDocument:
    return msgspec.structs.replace(WANTED, logs=logs)


def test_what_was_unproven_stays_so() -> None:
    doubtful = _cut(10 * DAY_MS - 1, unproven=(0, 10))
    assert why(_done(dense=True), doubtful) == "an earlier run left them unproven"


def test_units_have_logs_of_one_broker_and_are_not_too_large() -> None:
    def log(number: int, size: int, broker: int) -> LogToExport:
        return LogToExport(ExportableLog(DatasetLog("t", number), ID, 0, 10, size, broker), 0, joined=False)

    some = [log(0, 10, 1), log(1, 10, 2), log(2, 10, 1), log(3, UNIT_BYTES, 1), log(4, UNIT_BYTES, 1)]
    assert [[p.log.partition for p in unit] for unit in divide_into_units(some)] == [[0, 2], [3], [4], [1]]
