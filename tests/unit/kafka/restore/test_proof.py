"""The proof of a partition by a scripted cluster: what is told when it falters, lies, or ends too early."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest

from logkeep.errors import ClusterUnreachable, Damaged
from logkeep.formats.kafka.batches import BatchStretch
from logkeep.formats.kafka.transactions import SettledTransactions
from logkeep.kafka.client.fetch import FetchLimits
from logkeep.kafka.client.rate_limit import BURST_S
from logkeep.kafka.client.retry import ProgressBackoff
from logkeep.kafka.logs.live import LiveLogs, LiveRange, read_ahead
from logkeep.kafka.logs.lost_offset import LogFacts
from logkeep.kafka.restore.facts.units import LogProof, Offsets, Producer, ReplayLog, SourceLog
from logkeep.kafka.restore.proof.compare import prove
from logkeep.model.segments import Codec
from logkeep.repository.chain import layout
from logkeep.repository.chain.commits import SourceRef
from tests.support.kafka.scripted_cluster import Asked, Reply, Script, ScriptedConnection
from tests.support.kafka.slow_records import Slow, batch_of
from tests.support.kafka.stored_segments import LOG, place, written

TOPIC_ID = UUID(int=7)
BATCHES = [batch_of(10 * b, [Slow(d, 0, b"%d" % d, b"v%d" % b) for d in range(10)]) for b in range(6)]


@dataclass
class Case:
    """An archive of sixty records, and a target that a script answers for, two batches at a time."""

    batches: list[bytes] = field(default_factory=lambda: list(BATCHES))
    place: SourceRef = field(default_factory=place)
    pauses: list[float] = field(default_factory=list)
    trouble: Callable[[Asked, int], Reply | None] = lambda _asked, _number: None
    number: int = 0
    fetched: int = 0
    damaged: bool = False
    log_start: int = 0
    log_end: int = 60

    def answer(self, asked: Asked) -> Reply:
        self.number += 1
        wrong = self.trouble(asked, self.number)
        if wrong is not None:
            return wrong
        first = asked.offset // 10
        return Reply(b"".join(self.batches[first : first + 2]), log_start=self.log_start)

    def proof(self, offsets: Offsets = Offsets.TRANSLATE) -> LogProof:
        segments = tuple(written(self.place, b"".join(BATCHES), Codec.NONE))
        if self.damaged:
            _damage(self.place, layout.segment("prod", segments[0]))
        script = Script(self.answer, lambda: 0.0, LogFacts(TOPIC_ID, self.log_start, self.log_end))
        log = ReplayLog(
            sources=(SourceLog(log=LOG, start=0, end=60, segments=segments, transactional=False),),
            topic="t", topic_id=TOPIC_ID.hex, partition=0, offsets=offsets, base=0,
            producer=Producer(producer_id=1, epoch=0, position=0),
        )  # fmt: skip
        return prove(log, self.place, script, SettledTransactions((), ()), 60, self._progress, self.pauses.append)

    def _progress(self, size: int) -> None:
        self.fetched += size


def _damage(where: SourceRef, name: str) -> None:
    data = bytearray(where.store.get(name, 1 << 20))
    data[-2] ^= 1
    where.store.delete(name)
    where.store.put_new(name, bytes(data))


def test_what_is_fetched_is_counted_and_agrees() -> None:
    case = Case()
    proof = case.proof(Offsets.PRESERVE)
    assert (proof.detail, proof.records, proof.archive_digest) == ("", 60, proof.target_digest)
    assert proof.bytes == case.fetched == sum(len(b) for b in BATCHES)


def test_answers_that_fail_in_between_change_nothing() -> None:
    def throttled_then_elsewhere(asked: Asked, number: int) -> Reply | None:
        return {2: Reply(served=False, throttle_ms=10), 4: Reply(error=6), 6: Reply(error=5)}.get(number)

    case = Case(trouble=throttled_then_elsewhere)
    assert case.proof().good
    assert case.pauses


def test_a_cluster_that_stays_away_is_an_error_and_no_verdict() -> None:
    def gone(asked: Asked, number: int) -> Reply | None:
        if number > 1:
            raise ClusterUnreachable("the connection broke")
        return None

    with pytest.raises(ClusterUnreachable):
        Case(trouble=gone).proof()


def test_a_user_who_may_not_read_gets_no_proof() -> None:
    proof = Case(trouble=lambda _asked, _number: Reply(error=29)).proof()
    assert (proof.good, proof.archive_digest) == (False, "")
    assert "cannot be read back" in proof.detail


def test_a_target_with_a_broken_batch_is_refuted() -> None:
    broken = bytearray(BATCHES[3])
    broken[-2] ^= 1
    proof = Case(batches=[*BATCHES[:3], bytes(broken), *BATCHES[4:]]).proof()
    assert "CRC-32C" in proof.detail
    assert not proof.good


def test_a_target_whose_records_cannot_be_read_is_refuted() -> None:
    odd = batch_of(30, [Slow(d, 0) for d in range(10)], b"no record." * 10)
    proof = Case(batches=[*BATCHES[:3], odd, *BATCHES[4:]]).proof()
    assert "the target holds a batch that cannot be read" in proof.detail


def test_an_archive_that_cannot_be_read_is_not_the_targets_fault() -> None:
    with pytest.raises(Damaged):
        Case(damaged=True).proof()


def test_a_log_that_ends_too_early_is_refuted() -> None:
    case = Case(batches=BATCHES[:4], log_end=40)
    proof = case.proof()
    assert "cannot be read to offset 60: the source's log lost its end" in proof.detail


@pytest.mark.parametrize("offsets", list(Offsets))
def test_a_log_that_begins_behind_its_first_record_is_refuted(offsets: Offsets) -> None:
    """A fetch shows whole batches, so the deleted records of the first one are still there to be compared."""
    proof = Case(log_start=3).proof(offsets)
    assert (proof.first_difference, proof.detail) == (3, "the log begins at offset 3 instead of 0")


def test_reading_ahead_gives_everything_in_order_and_fails_in_its_turn() -> None:
    def items() -> Iterator[int]:
        yield from range(3)
        raise ClusterUnreachable("in the other thread")

    seen: list[int] = []
    with pytest.raises(ClusterUnreachable):
        seen.extend(read_ahead(items(), "test"))
    found = list[int]()
    reading = read_ahead(items(), "test")
    found.append(next(reading))
    reading.close()
    assert found == [0]


@dataclass
class _OwnMemory:
    """A connection that receives into the same memory again and again, as ours do."""

    inner: ScriptedConnection
    memory: bytearray = field(default_factory=lambda: bytearray(1 << 16))

    def send(self, request: bytes) -> None:
        self.inner.send(request)

    def receive(self) -> memoryview:
        reply = self.inner.receive()
        self.memory[: len(reply)] = reply
        return memoryview(self.memory)[: len(reply)]

    def close(self) -> None: ...


class _Remembering(Script):
    def connect(self, broker: int) -> _OwnMemory:  # type: ignore[override]  # it wraps the one that it is to give
        return _OwnMemory(super().connect(broker))


@pytest.mark.parametrize("troubled", [(), (2,), (3,), (2, 3), (2, 4, 5)])
def test_what_one_lane_received_stays_while_the_other_receives(troubled: tuple[int, ...]) -> None:
    """Also when an answer has to be asked for again: the next stretch is received while this one is in use."""
    case = Case(trouble=lambda _asked, number: Reply(error=6) if number in troubled else None)
    script = _Remembering(case.answer, lambda: 0.0, LogFacts(TOPIC_ID, 0, 60))
    logs = LiveLogs(script, 1, FetchLimits(), ProgressBackoff(case.pauses.append), lanes=2)
    before, seen = None, list[bytes]()
    for stretch in logs.read(LiveRange("t", TOPIC_ID, 0, 0, 60), 1):
        assert isinstance(stretch, BatchStretch)
        if before is not None:
            seen.append(bytes(before.buffer))
        before = stretch
    assert before is not None
    assert b"".join((*seen, bytes(before.buffer))) == b"".join(BATCHES)


def test_a_live_log_is_read_at_the_rate_of_the_user() -> None:
    """Each request waits until the bytes of the replies before it are paid for."""
    case, bytes_per_s = Case(), 100
    script = Script(case.answer, lambda: sum(case.pauses), LogFacts(TOPIC_ID, 0, 60))
    backoff = ProgressBackoff(case.pauses.append, script.clock)
    logs = LiveLogs(script, 1, FetchLimits(bytes_per_s=bytes_per_s), backoff)
    for _ in logs.read(LiveRange("t", TOPIC_ID, 0, 0, 60), 1):
        pass
    before_last = sum(map(len, BATCHES[:4]))
    assert len(script.asked) == 3
    assert script.asked[-1].at_s > before_last / bytes_per_s - BURST_S


@pytest.mark.parametrize(
    "fields", [{"base_time_ms": 2000, "max_time_ms": 2000}, {"attributes": 8, "max_time_ms": 2000}]
)
def test_the_same_record_bytes_at_another_time_are_other_records(fields: dict[str, int]) -> None:
    """The time of a batch is in its header, and a broker that stamps its own leaves the records as they are."""
    other = batch_of(30, [Slow(d, 0, b"%d" % d, b"v3") for d in range(10)], None, **fields)
    proof = Case(batches=[*BATCHES[:3], other, *BATCHES[4:]]).proof()
    assert (proof.first_difference, proof.detail) == (
        30,
        "it is not the archived record of offset 30: the time differs",
    )
