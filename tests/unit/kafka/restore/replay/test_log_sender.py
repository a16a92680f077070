"""What a log does with the answers to its batches, without a broker."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from logkeep.kafka.client.produce import Ack
from logkeep.kafka.restore.facts.units import Offsets, Producer, ReplayLog, ReplayOutcome, SourceLog
from logkeep.kafka.restore.replay.log_sender import WINDOW, LogReplay, ProgressShare
from logkeep.kafka.restore.replay.reader import StreamReader
from logkeep.kafka.restore.replay.resume_point import TargetEnd
from logkeep.model.segments import Codec
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.handmade_batches import dense
from tests.support.kafka.stored_segments import LOG, place, written

RECORDS = 3
BATCHES = 20


def _log(where: SourceRef, **more: Any) -> ReplayLog:
    data = b"".join(dense(at * RECORDS, RECORDS).encode() for at in range(BATCHES))
    fields: dict[str, Any] = {
        "sources": (
            SourceLog(
                log=LOG,
                start=0,
                end=BATCHES * RECORDS,
                segments=tuple(written(where, data, Codec.NONE)),
                transactional=False,
            ),
        ),
        "topic": "orders",
        "topic_id": "00" * 16,
        "partition": 0,
        "offsets": Offsets.TRANSLATE,
        "base": 100,
        "producer": Producer(7, 0, 100),
    }
    return ReplayLog(**(fields | more))


@pytest.fixture
def log() -> LogReplay:
    return _standing(place())


def _standing(where: SourceRef, **more: Any) -> LogReplay:
    planned = _log(where, **more)
    with ThreadPoolExecutor(1) as reader:
        reading = StreamReader(planned, where, reader)
        made = LogReplay(planned, reading, lambda _: None)
        made.resume_from(TargetEnd(100, None))
        made.head()  # everything fits into one load: the reader is not needed any more
        made.head()
    return made


def _send(log: LogReplay) -> int:
    """As many batches as may be sent; how many that were."""
    count = 0
    while log.sendable() is not None:
        log.sent()
        count += 1
    return count


def _ack(log: LogReplay, error: int = 0, base: int = -1, said: str = "") -> int:
    return log.acknowledged(Ack(log.key, error, base, said))


def test_the_first_batch_goes_alone(log: LogReplay) -> None:
    assert _send(log) == 1
    assert _ack(log, base=100)
    assert _send(log) == WINDOW
    assert _ack(log, base=103)
    assert _send(log) == 1


def test_a_first_batch_that_meets_no_leader_is_sent_again_and_alone(log: LogReplay) -> None:
    """A broker without a memory of us would take the second one as the first."""
    first = log.sendable()
    _send(log)
    assert not _ack(log, error=6)
    assert log.retry_reason is not None
    assert _send(log) == 0, "nothing goes before the target was asked again"
    log.resume_from(TargetEnd(100, None))
    assert log.sendable() == first
    assert _send(log) == 1


def test_after_an_error_in_the_middle_the_target_decides_what_is_sent(log: LogReplay) -> None:
    _send(log)
    _ack(log, base=100)
    _send(log)
    _ack(log, base=103)
    assert not _ack(log, error=7)
    for base in (109, 112, 115):
        assert not _ack(log, base=base), "answers behind an error count for nothing"
    log.resume_from(TargetEnd(109, 8))
    head = log.head()
    assert head is not None
    assert (head.step.start, head.step.sent) == (109, 9)
    assert _send(log) == 1


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (10, ReplayOutcome.REFUSED),
        (32, ReplayOutcome.REFUSED),
        (87, ReplayOutcome.REFUSED),
        (2, ReplayOutcome.REFUSED),
        (29, ReplayOutcome.DENIED),
        (53, ReplayOutcome.DENIED),
    ],
)
def test_errors_that_do_not_pass(log: LogReplay, error: int, outcome: ReplayOutcome) -> None:
    _send(log)
    assert not _ack(log, error=error, said="the broker's own words")
    assert log.trouble is not None
    assert log.trouble.outcome is outcome
    assert "the broker's own words" in log.trouble.detail
    assert _send(log) == 0


def test_a_disk_that_failed_is_remembered_until_something_is_taken(log: LogReplay) -> None:
    """Another replica may take over; if none does, people have to be told of the disk and not of the silence after."""
    log.leader = 7
    _send(log)
    assert not _ack(log, error=56, said="disk error")
    assert log.trouble is None
    assert log.retry_reason is not None
    log.resume_from(TargetEnd(100, None))
    assert "broker 7 did not append a batch for offset 100" in log.disk_failed
    assert "disk error" in log.disk_failed
    _send(log)
    assert not _ack(log, error=6)
    assert log.disk_failed, "another trouble does not explain it away"
    log.resume_from(TargetEnd(100, None))
    _send(log)
    assert _ack(log, base=100)
    assert not log.disk_failed


def test_an_offset_that_was_taken(log: LogReplay) -> None:
    _send(log)
    assert not _ack(log, base=101)
    assert log.trouble is not None
    assert (log.trouble.outcome, log.finished) == (ReplayOutcome.FOREIGN, True)


def test_it_is_done_only_when_the_target_is_seen_to_end_there(log: LogReplay) -> None:
    base = 100
    while _send(log) or not log.idle:
        assert _ack(log, base=base)
        base += RECORDS
    head = log.head()
    assert head is not None
    assert head.last
    log.conclude()
    assert (log.all_acknowledged, log.done) == (True, False)
    log.resume_from(TargetEnd(base - RECORDS, base - 101))
    assert log.head() is not None
    log.conclude()
    assert log.retry_reason is not None, "everything was acknowledged, and the log ends too early"
    log.resume_from(TargetEnd(base, base - 101))
    log.head()
    log.conclude()
    assert log.done
    assert (log.records, log.end) == (BATCHES * RECORDS, base)
    assert log.runs()[0].translate(5) == (105, True)


def test_a_damaged_archive_is_an_outcome() -> None:
    where = place()
    planned = _log(where)
    name = layout.segment(where.source, planned.first.segments[0])
    stored = bytearray(where.store.get(name, 1 << 20))
    stored[-1] ^= 1
    where.store.delete(name)
    where.store.put_new(name, bytes(stored))
    with ThreadPoolExecutor(1) as reader:
        log = LogReplay(planned, StreamReader(planned, where, reader), lambda _: None)
        log.resume_from(TargetEnd(100, None))
        assert log.head() is None
    assert log.trouble is not None
    assert log.trouble.outcome is ReplayOutcome.DAMAGED


def test_progress_reaches_the_total_also_where_fewer_bytes_are_sent() -> None:
    counted: list[int] = []
    share = ProgressShare(counted.append, 100)
    share(30)
    share.complete()
    share.complete()
    assert counted == [30, 70]
