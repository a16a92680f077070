"""Whether a log and its archive have the same past, from the batches that both have at one offset."""

from dataclasses import replace

import msgspec
import pytest

from logkeep.formats.kafka.plain_records import RecordBody, bodies_of
from logkeep.kafka.backup.continuity.archived_batch import header_of
from logkeep.kafka.backup.continuity.past_check import (
    ArchivedBatch,
    JudgedPasts,
    LeaderBatch,
    PastVerdict,
    SeenLog,
    ToCompare,
    compacted_topics,
    compare_before_commit,
    compare_before_plan,
    compare_bodies,
    compare_headers,
    trusted_logs,
)
from logkeep.kafka.backup.plan import REMOVED_BEFORE, REMOVED_MEANWHILE
from logkeep.kafka.backup.units import CopyOutcome, CopyResult, RangeResult
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.logs.last_batch import LastBatch
from logkeep.kafka.logs.leader_epochs import EpochRun
from logkeep.kafka.record.documents import ArchivedReach
from logkeep.model.segments import Collection, LogName
from logkeep.repository.backups.manifest import KnownGap
from tests.support.kafka.cluster_values import ID, OTHER_ID, bounds, facts, topic
from tests.support.kafka.slow_records import Slow, batch_of, gzipped

LOG = TopicPartition("orders", 0)
NAME = LogName(Collection.TOPICS, "orders", ID.hex, 0)
BATCH = LastBatch(
    base_offset=90,
    last_offset=99,
    leader_epoch=3,
    size=500,
    crc=77,
    records=10,
    producer_id=4,
    producer_epoch=0,
    base_sequence=30,
)


def changed(**fields: int) -> LastBatch:
    return msgspec.structs.replace(BATCH, **fields)


@pytest.mark.parametrize(
    ("start", "end", "found", "plain", "compacted"),
    [
        (0, 200, BATCH, PastVerdict.SAME, PastVerdict.SAME),
        (95, 200, BATCH, PastVerdict.SAME, PastVerdict.SAME),
        (100, 200, None, PastVerdict.REMOVED, PastVerdict.REMOVED),
        (150, 200, None, PastVerdict.REMOVED, PastVerdict.REMOVED),
        (0, 99, None, PastVerdict.OTHER, PastVerdict.OTHER),
        (0, 200, changed(crc=78), PastVerdict.OTHER, PastVerdict.BY_RECORDS),
        (0, 200, changed(crc=78, records=3, size=200), PastVerdict.OTHER, PastVerdict.BY_RECORDS),
        (0, 200, changed(crc=78, attributes=0x40), PastVerdict.OTHER, PastVerdict.BY_RECORDS),
        (0, 200, changed(crc=78, attributes=0x10), PastVerdict.OTHER, PastVerdict.OTHER),
        (0, 200, changed(leader_epoch=4), PastVerdict.OTHER, PastVerdict.OTHER),
        (0, 200, changed(crc=78, producer_id=5), PastVerdict.OTHER, PastVerdict.OTHER),
        (0, 200, changed(crc=78, base_sequence=31), PastVerdict.OTHER, PastVerdict.OTHER),
        (0, 200, changed(crc=78, base_offset=88), PastVerdict.OTHER, PastVerdict.OTHER),
        (0, 200, changed(crc=78, last_offset=104), PastVerdict.OTHER, PastVerdict.OTHER),
        (0, 200, changed(base_offset=100, last_offset=109), PastVerdict.OTHER, PastVerdict.UNDECIDED),
        (0, 200, None, PastVerdict.OTHER, PastVerdict.OTHER),
    ],
)
def test_the_batch_at_the_last_archived_offset(
    start: int, end: int, found: LastBatch | None, plain: PastVerdict, compacted: PastVerdict
) -> None:
    there = LeaderBatch(start, end, found)
    assert compare_headers(BATCH, there, compacted=False) is plain
    assert compare_headers(BATCH, there, compacted=True) is compacted


def body(text: str) -> RecordBody:
    return RecordBody(1000, text.encode())


@pytest.mark.parametrize(
    ("mine", "theirs", "verdict"),
    [
        ({1: "a", 2: "b"}, {2: "b"}, PastVerdict.SAME),
        ({2: "b"}, {1: "a", 2: "b"}, PastVerdict.SAME),
        ({1: "a", 2: "b"}, {1: "a", 2: "x"}, PastVerdict.OTHER),
        ({1: "a"}, {2: "b"}, PastVerdict.UNDECIDED),
        ({}, {2: "b"}, PastVerdict.UNDECIDED),
        (None, {2: "b"}, PastVerdict.UNDECIDED),
        ({2: "b"}, None, PastVerdict.UNDECIDED),
    ],
)
def test_records_that_compaction_left(
    mine: dict[int, str] | None, theirs: dict[int, str] | None, verdict: PastVerdict
) -> None:
    bodies = [None if side is None else {o: body(t) for o, t in side.items()} for side in (mine, theirs)]
    assert compare_bodies(*bodies) is verdict


def test_a_record_is_the_same_in_a_batch_that_compaction_rewrote() -> None:
    """Fewer records, another codec, and the delete horizon in place of the base time."""
    records = [Slow(0, 5, b"a", b"1"), Slow(2, 7, b"b", None, ((b"h", b"x"),))]
    whole = batch_of(40, records, base_time_ms=1000, max_time_ms=1007)
    moved = replace(records[1], time_delta=1007 - 9000)
    left = batch_of(40, [moved], gzipped(moved.encode()), attributes=0x41, delta=2, base_time_ms=9000)
    assert bodies_of(left) == {42: bodies_of(whole)[42]}
    assert bodies_of(whole)[42].time_ms == 1007
    stamped = batch_of(40, records, attributes=0x08, base_time_ms=1000, max_time_ms=5000)
    assert {each.time_ms for each in bodies_of(stamped).values()} == {5000}


def test_a_header_is_kept_with_all_its_fields() -> None:
    made = header_of(batch_of(40, [Slow(0), Slow(3)], delta=5, epoch=7, producer=9, max_time_ms=2000))
    assert (made.base_offset, made.last_offset, made.end, made.leader_epoch) == (40, 45, 46, 7)
    assert (made.records, made.producer_id, made.base_time_ms, made.max_time_ms) == (2, 9, 1000, 2000)
    assert msgspec.json.decode(msgspec.json.encode(made), type=LastBatch) == made


def reach(batch: LastBatch | None, history: str = ID.hex, epoch: int = 3) -> ArchivedReach:
    return ArchivedReach(history, 100, epoch, 100, last_batch=batch)


def copied(lo: int, hi: int, batch: LastBatch | None, history: str = ID.hex) -> CopyResult:
    log = LogName(Collection.TOPICS, "orders", history, 0)
    runs = (EpochRun(3, lo, hi),)
    one = RangeResult(log=log, lo=lo, hi=hi, outcome=CopyOutcome.COPIED, reached=hi, epochs=runs, last_batch=batch)
    return CopyResult(unit="u", ranges=(one,), segments=())


LATER = changed(base_offset=120, last_offset=129)


def planned(start: int, base: ArchivedReach, *earlier: CopyResult, newest: ArchivedReach | None = None) -> ToCompare:
    ends = {LOG: bounds(start, 500)}
    return compare_before_plan([topic("orders")], ends, {LOG: newest or base}, {LOG: base}, earlier)


def test_what_is_compared_before_the_plan() -> None:
    assert planned(0, reach(BATCH)) == ToCompare((ArchivedBatch(NAME, BATCH),))
    both = planned(0, reach(BATCH), copied(100, 130, LATER))
    assert [each.batch for each in both.batches] == [BATCH, LATER]
    assert planned(100, reach(BATCH)) == ToCompare(), "retention removed it"
    assert planned(0, reach(BATCH, OTHER_ID.hex)) == ToCompare(), "another topic"
    assert planned(0, reach(None, epoch=-1)) == ToCompare(), "nothing is archived"
    assert planned(0, reach(None)).unproven == {NAME}
    assert planned(100, reach(None)) == ToCompare()
    second = f"{ID.hex}-1"
    newer = planned(0, reach(BATCH), copied(0, 130, LATER, second), newest=ArchivedReach(second, 0, -1))
    assert [(each.log.history, each.batch) for each in newer.batches] == [(second, LATER)]


def test_a_log_that_begins_before_the_start_or_the_gap_that_is_archived_has_another_past() -> None:
    empty = replace(reach(None, epoch=-1), start=100)
    assert planned(99, empty).judged([]).others == (NAME,)
    assert planned(100, empty) == ToCompare()
    assert planned(99, replace(empty, last_batch=BATCH)).judged([]) == JudgedPasts(), "a batch without an epoch"
    ends, topics, base = {LOG: bounds(0, 500)}, [topic("orders")], {LOG: reach(BATCH)}
    gaps = [
        KnownGap(NAME, 50, 60, REMOVED_BEFORE),
        KnownGap(NAME, 10, 20, REMOVED_MEANWHILE),
        KnownGap(NAME, 80, 90, ""),
    ]
    for start, others in ((59, (NAME,)), (60, ())):
        ends = {LOG: bounds(start, 500)}
        assert compare_before_plan(topics, ends, base, base, (), (), gaps).judged([]).others == others
    assert compare_before_plan(topics, {LOG: bounds(0, 500)}, base, base, (), {LOG}, gaps) == ToCompare(), "trusted"


def test_a_resumed_range_that_retention_had_emptied_is_not_continued_by_a_log_that_begins_before_its_end() -> None:
    (one,) = copied(100, 130, None).ranges
    emptied = msgspec.structs.replace(one, epochs=(), log_start=130)
    unit = CopyResult(unit="u", ranges=(emptied,), segments=())
    assert planned(120, reach(BATCH), unit).judged([]).others == (NAME,)
    assert planned(130, reach(BATCH), unit) == ToCompare()
    inside = CopyResult(unit="u", ranges=(msgspec.structs.replace(emptied, log_start=0),), segments=())
    assert planned(120, reach(BATCH), inside) == ToCompare(), "a neighbour has the batch over this range"


def test_a_following_run_compares_only_what_changed_its_leader_or_end() -> None:
    ends, topics = {LOG: bounds(0, 500)}, [topic("orders")]
    assert trusted_logs({LOG: SeenLog(3, 500)}, topics, ends) == {LOG}
    assert trusted_logs({LOG: SeenLog(3, 400)}, topics, ends) == {LOG}
    assert trusted_logs({LOG: SeenLog(2, 500)}, topics, ends) == set()
    assert trusted_logs({LOG: SeenLog(3, 501)}, topics, ends) == set()
    assert trusted_logs({}, topics, ends) == set()
    base = {LOG: reach(BATCH)}
    earlier = [copied(100, 130, LATER)]
    resumed = compare_before_plan(topics, ends, base, base, earlier, {LOG})
    assert [each.batch for each in resumed.batches] == [LATER], "what a round before has copied is compared in any case"


def test_every_range_and_the_archive_are_compared_before_the_commit() -> None:
    first, second = copied(100, 120, changed(base_offset=110, last_offset=119)), copied(120, 130, LATER)
    wanted = compare_before_commit([first, second], {LOG: reach(BATCH)}, [topic("orders")])
    assert [each.batch.last_offset for each in wanted.batches] == [99, 119, 129]
    assert compare_before_commit([first], {}, [topic("orders", topic_id=OTHER_ID)]) == ToCompare()
    assert compare_before_commit([first], {}, [topic("orders")], {NAME}) == ToCompare()
    assert compare_before_commit([copied(100, 120, None)], {}, [topic("orders")]).unproven == {NAME}


def test_a_batch_that_retention_removed_meanwhile_proves_nothing_where_the_leader_changed() -> None:
    (one,) = copied(100, 130, LATER).ranges
    moved = CopyResult(unit="u", ranges=(msgspec.structs.replace(one, log_start=130),), segments=())
    then = facts((topic("orders"),), {LOG: bounds(0, 130)}, {})
    same = compare_before_commit([moved], {LOG: reach(BATCH)}, [topic("orders")], (), then)
    assert same == ToCompare(), "both are gone, and no broker was restarted"
    led = replace(then.topics[0].partitions[0], leader_epoch=2)
    before = replace(then.topics[0], partitions=(led,))
    earlier = facts((before,), {LOG: bounds(0, 130)}, {})
    again = compare_before_commit([moved], {LOG: reach(BATCH)}, [topic("orders")], (), earlier)
    assert again.judged([]).undecided == (NAME,)
    late = compare_before_commit([copied(100, 130, LATER)], {}, [topic("orders")], (), earlier)
    assert late.judged([(late.batches[0], PastVerdict.SAME)]) == JudgedPasts()
    assert late.judged([(late.batches[0], PastVerdict.REMOVED)]).undecided == (NAME,), "since the last reply"


def test_ranges_whose_leader_epochs_decrease_are_of_two_pasts() -> None:
    (later,) = copied(120, 130, LATER).ranges
    older = CopyResult(unit="v", ranges=(msgspec.structs.replace(later, epochs=(EpochRun(2, 120, 130),)),), segments=())
    wanted = compare_before_commit([older, copied(100, 120, BATCH)], {}, [topic("orders")])
    assert wanted.judged([]).others == (NAME,)
    assert planned(130, reach(BATCH), older, copied(100, 120, BATCH)).judged([]).others == (NAME,), "also if resumed"


def test_a_log_whose_last_batch_went_before_it_was_compared_begins_after_it() -> None:
    wanted = planned(0, reach(BATCH))
    judged = wanted.judged([(wanted.batches[0], PastVerdict.REMOVED)])
    assert (judged.others, judged.undecided) == ((), ())
    assert judged.bounds_after({LOG: bounds(0, 500)}) == {LOG: bounds(100, 500)}


def test_one_batch_of_another_past_is_enough() -> None:
    wanted = ToCompare((ArchivedBatch(NAME, BATCH), ArchivedBatch(NAME, LATER)), frozenset({NAME}))
    verdicts = [PastVerdict.UNDECIDED, PastVerdict.OTHER]
    judged = wanted.judged(zip(wanted.batches, verdicts, strict=True))
    assert (judged.others, judged.undecided) == ((NAME,), ())
    assert wanted.judged([]).undecided == (NAME,)


def test_a_topic_that_was_compacted_at_the_last_backup_still_counts() -> None:
    now = facts((topic("orders"),), {LOG: bounds(0, 1)}, {})
    assert compacted_topics(now, None) == {"orders"}, "inherited from the brokers"
    plain = replace(now, configs={"orders": replace(now.configs["orders"], inherited={})})
    assert compacted_topics(plain, None) == set()
