"""What goes wrong between a replay and its target, and who else meddles: exact, or said what is wrong."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import msgspec
import pytest

from logkeep.errors import ClusterNotReady, ClusterUnreachable
from logkeep.kafka.admin.offsets import list_offsets
from logkeep.kafka.admin.producers import abort_transaction, add_partitions, begin_producer, new_producer_id
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.client.topology import TopicPartition
from logkeep.kafka.restore.facts.units import LogResult, Offsets, Producer, ReplayOutcome, ReplayUnit
from logkeep.kafka.restore.replay.task import ReplayTiming, replay
from tests.integration.kafka.replay.attempts import KILLED, Attempts
from tests.integration.kafka.replay.conftest import Archived
from tests.support.kafka.backup_steps import beside
from tests.support.kafka.clock_ahead import ClockAhead
from tests.support.kafka.replay_into_topics import committed, expected, nothing, without_offsets
from tests.support.processes import wait_for
from tests.support.servers.proxied_kafka import Shaky

pytestmark = pytest.mark.xdist_group("kafka-replay")
SOURCES = (("smooth", Offsets.TRANSLATE), ("bumpy", Offsets.PRESERVE))


def _through_proxy(shaky: Shaky, unit: ReplayUnit) -> ReplayUnit:
    return msgspec.structs.replace(unit, settings=ClientSettings(endpoints(shaky.bootstrap)))


def _one(unit: ReplayUnit) -> LogResult:
    (result,) = replay(unit, nothing).logs
    return result


def _assert_exact(logs: Archived, source: str, unit: ReplayUnit) -> None:
    wanted = expected(logs.archive.bootstrap, logs.archive, logs.backup_id, source, 0)
    seen, bounds = committed(logs.archive.bootstrap, unit.logs[0].topic, 0)
    if unit.logs[0].offsets is Offsets.PRESERVE:
        assert seen == wanted
        assert bounds == (unit.logs[0].first.start, unit.logs[0].first.end)
    else:
        assert without_offsets(seen) == without_offsets(wanted)
        assert bounds == (0, len(wanted))


def _cut_at_random(shaky: Shaky, logs: Archived, way: tuple[str, Offsets], name: str, cuts: int) -> int:
    """Replays whose connections are cut somewhere, until there were so many cuts; how many there were."""
    source, offsets = way
    before, round_ = shaky.proxy.cuts, 0
    shaky.budget.most, shaky.budget.chance = 12_000, random.Random(name)
    try:
        while shaky.proxy.cuts - before < cuts:
            unit = _through_proxy(shaky, logs.target.unit(source, f"{name}-{source}-{round_}", offsets))
            assert _one(unit).outcome is ReplayOutcome.DONE
            _assert_exact(logs, source, unit)
            round_ += 1
    finally:
        shaky.budget.chance = None
    return shaky.proxy.cuts - before


@pytest.mark.parametrize("way", SOURCES, ids="-".join)
def test_connections_are_cut_at_random_points(shaky: Shaky, logs: Archived, way: tuple[str, Offsets]) -> None:
    assert _cut_at_random(shaky, logs, way, "cut", 10) >= 10


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("way", SOURCES, ids="-".join)
def test_connections_are_cut_at_many_points(shaky: Shaky, logs: Archived, way: tuple[str, Offsets]) -> None:
    print(f"{way}: {_cut_at_random(shaky, logs, way, 'often', 110)} connections cut, all replays exact")


@pytest.mark.parametrize("way", SOURCES[1:], ids="-".join)
def test_a_broker_dies_and_comes_back(shaky: Shaky, logs: Archived, way: tuple[str, Offsets]) -> None:
    """It needs three minutes for that, as after a rolling restart with much to recover: of a clock that runs ahead."""
    source, offsets = way
    unit = _through_proxy(shaky, logs.target.unit(source, f"restarted-{source}", offsets))
    clock = _AwayFor(180.0)
    timing = ReplayTiming(pause=clock.pause, clock=clock)
    with beside(lambda: replay(unit, nothing, timing).logs[0]) as running:
        with shaky.held_after(12_000):
            shaky.kafka.kill()
        wait_for(clock.due.is_set, "three minutes without the broker")
        shaky.kafka.start()
        clock.back.set()
        assert running.result().outcome is ReplayOutcome.DONE
    _assert_exact(logs, source, unit)


class _AwayFor(ClockAhead):
    """Runs ahead until the broker is due back; when it is back, pauses are real."""

    def __init__(self, away_s: float) -> None:
        super().__init__()
        self._away_s = away_s
        self.due, self.back = threading.Event(), threading.Event()

    def pause(self, seconds: float) -> None:
        if self.back.is_set():
            time.sleep(seconds)
            return
        super().pause(seconds)
        if self.ahead_s >= self._away_s:
            self.due.set()
            assert self.back.wait(120)


def test_a_broker_dies_and_stays_away(shaky: Shaky, logs: Archived) -> None:
    """Waited for, and in the end said what to look at; as soon as it is back another attempt goes on."""
    unit = _through_proxy(shaky, logs.target.unit("smooth", "left-alone", Offsets.TRANSLATE))
    clock = ClockAhead()
    with beside(lambda: replay(unit, nothing, ReplayTiming(pause=clock.pause, clock=clock))) as running:
        with shaky.held_after(12_000):
            shaky.kafka.kill()
        with pytest.raises(ClusterUnreachable) as caught:
            running.result()
    shaky.kafka.start()
    assert "server logs" in caught.value.remedy
    assert _one(unit).outcome is ReplayOutcome.DONE
    _assert_exact(logs, "smooth", unit)


@pytest.mark.parametrize("way", SOURCES, ids="-".join)
def test_two_attempts_at_the_same_time(logs: Archived, way: tuple[str, Offsets]) -> None:
    """One may be shut out of the holes by the other, and must then leave them alone."""
    source, offsets = way
    unit = logs.target.unit(source, f"twice-{source}", offsets)

    def attempt() -> str:
        try:
            return _one(unit).outcome
        except ClusterNotReady as error:
            return error.what

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda _: attempt(), range(2)))
    assert ReplayOutcome.DONE in ends, ends
    assert set(ends) <= {ReplayOutcome.DONE, "another attempt fills the holes of this log"}, ends
    assert _one(unit).outcome is ReplayOutcome.DONE
    _assert_exact(logs, source, unit)


def _partly(shaky: Shaky, children: Attempts, unit: ReplayUnit, size_bytes: int) -> int:
    """Begin a replay and kill it; where the target ends then."""
    shaky.gate.close_after(size_bytes)
    try:
        children.start(_through_proxy(shaky, unit))
        wait_for(lambda: shaky.gate.closed, "the hold")
        assert children.kill() == KILLED
    finally:
        shaky.gate.open()
    wait_for(lambda: not shaky.proxy.connections, "what it had sent to be passed on")
    return _settled_end(unit)


def _settled_end(unit: ReplayUnit) -> int:
    """Where the log ends when nothing more arrives: several times the same, some time apart."""
    log = TopicPartition(unit.logs[0].topic, 0)
    with Cluster(unit.settings) as cluster:

        def looks() -> list[int]:
            found = []
            for _ in range(6):
                found.append(list_offsets(cluster, [log])[log].offset)
                time.sleep(0.1)
            return found

        ends = looks()
        while any(a != b for a, b in pairwise(ends)):
            ends = looks()
    assert 0 < ends[0] < unit.logs[0].first.end
    return ends[0]


def _write(shaky: Shaky, topic: str) -> None:
    producer = shaky.topics.producer()
    producer.produce(topic, b"foreign", None, 0)
    assert producer.flush(30) == 0


def test_a_foreign_writer_between_two_attempts(shaky: Shaky, logs: Archived, children: Attempts) -> None:
    unit = logs.target.unit("smooth", "foreign-between", Offsets.TRANSLATE)
    end = _partly(shaky, children, unit, 12_000)
    _write(shaky, "foreign-between")
    result = _one(unit)
    assert result.outcome is ReplayOutcome.FOREIGN
    assert str(end + 1) in result.detail
    assert _settled_end(unit) == end + 1, "nothing was sent behind it"


def test_a_foreign_writer_in_the_middle_of_an_attempt(shaky: Shaky, logs: Archived) -> None:
    unit = _through_proxy(shaky, logs.target.unit("smooth", "foreign-within", Offsets.PRESERVE))
    with beside(lambda: _one(unit)) as running:
        with shaky.held_after(12_000):
            _write(shaky, "foreign-within")
        result = running.result()
    assert result.outcome is ReplayOutcome.FOREIGN, result
    assert "was appended at" in result.detail
    assert _one(unit).outcome is ReplayOutcome.FOREIGN


def test_a_foreign_writer_behind_the_end(shaky: Shaky, logs: Archived) -> None:
    unit = logs.target.unit("bumpy", "foreign-behind", Offsets.PRESERVE)
    assert _one(unit).outcome is ReplayOutcome.DONE
    _write(shaky, "foreign-behind")
    assert _one(unit).outcome is ReplayOutcome.FOREIGN


def _aborted(unit: ReplayUnit, transactional_id: str) -> None:
    """A lone abort marker."""
    with Cluster(unit.settings) as cluster:
        producer = begin_producer(cluster, transactional_id, 60_000)
        assert add_partitions(cluster, transactional_id, producer, [TopicPartition(unit.logs[0].topic, 0)])
        assert abort_transaction(cluster, transactional_id, producer)


def test_a_marker_of_ours_among_records(shaky: Shaky, logs: Archived, children: Attempts) -> None:
    unit = logs.target.unit("smooth", "misplaced", Offsets.PRESERVE)
    _partly(shaky, children, unit, 12_000)
    _aborted(unit, unit.logs[0].transactional_id)
    wait_for(lambda: _one(unit).outcome is ReplayOutcome.MISPLACED, "the marker to be found")


def test_a_marker_of_others_among_records(shaky: Shaky, logs: Archived, children: Attempts) -> None:
    """It is not ours to delete what others wrote, were it only the end of a transaction."""
    unit = logs.target.unit("smooth", "meddled-with", Offsets.PRESERVE)
    _partly(shaky, children, unit, 12_000)
    _aborted(unit, "meddler")
    wait_for(lambda: _one(unit).outcome is ReplayOutcome.FOREIGN, "the marker to be found")
    _write(shaky, "meddled-with")
    assert _one(unit).outcome is ReplayOutcome.FOREIGN


def test_records_of_others_beside_a_marker_of_ours(shaky: Shaky, logs: Archived, children: Attempts) -> None:
    unit = logs.target.unit("smooth", "mixed", Offsets.PRESERVE)
    _partly(shaky, children, unit, 12_000)
    _aborted(unit, unit.logs[0].transactional_id)
    wait_for(lambda: _one(unit).outcome is ReplayOutcome.MISPLACED, "the marker to be found")
    _write(shaky, "mixed")
    assert _one(unit).outcome is ReplayOutcome.FOREIGN, "somebody's acknowledged record would be deleted with the topic"


def test_a_producer_that_the_broker_does_not_know(shaky: Shaky, logs: Archived, children: Attempts) -> None:
    """Then another one goes on, if the driver says so: behind what is there."""
    unit = logs.target.unit("smooth", "forgotten", Offsets.TRANSLATE)
    end = _partly(shaky, children, unit, 12_000)
    with Cluster(unit.settings) as cluster:
        other = new_producer_id(cluster)
    as_from_the_start = Producer(other.producer_id, other.epoch, 0)
    log = msgspec.structs.replace(unit.logs[0], producer=as_from_the_start)
    assert _one(msgspec.structs.replace(unit, logs=(log,))).outcome is ReplayOutcome.FORGOTTEN
    log = msgspec.structs.replace(log, producer=Producer(other.producer_id, other.epoch, end))
    assert _one(msgspec.structs.replace(unit, logs=(log,))).outcome is ReplayOutcome.DONE
    assert _one(msgspec.structs.replace(unit, logs=(log,))).outcome is ReplayOutcome.DONE
    _assert_exact(logs, "smooth", unit)


def test_batches_that_are_too_large_are_refused(logs: Archived) -> None:
    unit = logs.target.unit("smooth", "too-large", Offsets.TRANSLATE, config={"max.message.bytes": "2000"})
    result = _one(unit)
    assert result.outcome is ReplayOutcome.REFUSED
    assert "TOO_LARGE (10)" in result.detail


def test_a_topic_made_again_or_gone(logs: Archived) -> None:
    unit = logs.target.unit("smooth", "made-again", Offsets.TRANSLATE)
    log = msgspec.structs.replace(unit.logs[0], topic_id="00" * 16)
    assert _one(msgspec.structs.replace(unit, logs=(log,))).outcome is ReplayOutcome.GONE
    log = msgspec.structs.replace(unit.logs[0], topic="never-made")
    gone = replay(msgspec.structs.replace(unit, logs=(log,)), nothing, ReplayTiming(pause=nothing))
    assert [r.outcome for r in gone.logs] == [ReplayOutcome.GONE]


def test_a_limit_is_kept_to(logs: Archived) -> None:
    """Six megabytes, at one per second: the pauses it takes are as long as that, but for what is saved up."""
    unit = msgspec.structs.replace(logs.target.unit("smooth", "slow", Offsets.TRANSLATE), bytes_per_s=1_000_000)
    now_s, pauses = [0.0], list[float]()

    def pause(wait_s: float) -> None:
        pauses.append(wait_s)
        now_s[0] += wait_s

    (result,) = replay(unit, nothing, ReplayTiming(pause=pause, clock=lambda: now_s[0])).logs
    assert result.outcome is ReplayOutcome.DONE
    assert sum(pauses) >= result.sent_bytes / 1_000_000 - 1
    _assert_exact(logs, "smooth", unit)


def test_several_logs_share_requests(shaky: Shaky, logs: Archived) -> None:
    """Both logs and an unwritable one in one unit: each has its own end."""
    units = [
        logs.target.unit("smooth", "shared-smooth", Offsets.TRANSLATE),
        logs.target.unit("bumpy", "shared-bumpy", Offsets.PRESERVE),
        logs.target.unit("smooth", "shared-small", Offsets.PRESERVE, config={"max.message.bytes": "2000"}),
    ]
    unit = msgspec.structs.replace(units[0], logs=tuple(u.logs[0] for u in units))
    results = replay(unit, nothing).logs
    assert [r.outcome for r in results] == [ReplayOutcome.DONE, ReplayOutcome.DONE, ReplayOutcome.REFUSED]
    _assert_exact(logs, "smooth", units[0])
    _assert_exact(logs, "bumpy", units[1])
