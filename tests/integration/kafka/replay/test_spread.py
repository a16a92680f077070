"""Two archived logs spread over two partitions by the task itself: killed anywhere, and proven by what is there."""

import random
from collections import Counter
from itertools import chain

import msgspec
import pytest

from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.logs.brokers import SettingsBrokers
from logkeep.kafka.restore.facts.log_views import share_of
from logkeep.kafka.restore.facts.units import LogProof, Offsets, ReplayLog, ReplayOutcome, ReplayUnit
from logkeep.kafka.restore.proof.compare import prove
from logkeep.kafka.restore.proof.task import beginning_of
from logkeep.kafka.restore.replay.task import replay
from logkeep.repository.chain.commits import SourceRef
from tests.integration.kafka.replay.attempts import KILLED, Attempts
from tests.integration.kafka.replay.conftest import Archived
from tests.support.kafka.consumer_view import watermarks
from tests.support.kafka.replay_into_topics import committed, expected, nothing, without_offsets
from tests.support.kafka.slow_partitioner import slow_partition
from tests.support.processes import wait_for
from tests.support.servers.proxied_kafka import Shaky

pytestmark = pytest.mark.xdist_group("kafka-replay")
_GREETING_BYTES = 200
"""Less than any attempt sends, whatever is left to do."""


def _unit(shaky: Shaky, logs: Archived, topic: str) -> ReplayUnit:
    """Records of `bumpy`, then those of `smooth`, which have no keys."""
    topic_id = logs.target.create(topic, 2)
    first, second = (logs.target.log(name, 0, topic, topic_id, Offsets.TRANSLATE) for name in ("bumpy", "smooth"))
    spread = msgspec.structs.replace(first, spread_over=2, sources=(first.first, second.first))
    return ReplayUnit(
        place=logs.archive.place,
        settings=ClientSettings(endpoints(shaky.bootstrap)),
        logs=tuple(msgspec.structs.replace(spread, partition=p) for p in range(2)),
        prove=True,
    )


def _sent_undisturbed(shaky: Shaky, children: Attempts, unit: ReplayUnit) -> int:
    """How many bytes an attempt sends that nothing happens to."""
    shaky.sending.close_after(1 << 40)
    children.start(unit)
    assert children.ended() == ",".join([ReplayOutcome.DONE] * 2)
    sent = (1 << 40) - shaky.sending.left
    shaky.sending.open()
    return sent


def test_attempts_are_killed_at_random_points(shaky: Shaky, logs: Archived, children: Attempts) -> None:
    """What is there in the end is there once, by key, and proven. Held back is what attempts send: that is the data."""
    usual_bytes = _sent_undisturbed(shaky, children, _unit(shaky, logs, "spread-usual"))
    unit, chance, killed, ends = _unit(shaky, logs, "spread-killed"), random.Random(3), 0, list[int]()
    before = [expected(shaky.kafka.bootstrap, logs.archive, logs.backup_id, name, 0) for name in ("bumpy", "smooth")]
    whole = sum(map(len, before))
    while killed < 3 or not any(0 < end < whole for end in ends):
        assert len(ends) < 20, f"no attempt died in the middle: {ends} of {whole}"
        missing = whole - (ends[-1] if ends else 0)
        shaky.sending.close_after(chance.randrange(1, _GREETING_BYTES + usual_bytes * missing // whole))
        try:
            children.start(unit)
            wait_for(lambda: shaky.sending.closed or children.over, "the hold")
            killed += children.kill() == KILLED
        finally:
            shaky.sending.open()
        ends.append(sum(watermarks(shaky.kafka.bootstrap, "spread-killed", p)[1] for p in range(2)))
    results = replay(unit, nothing).logs
    assert [(r.outcome, r.proof is not None and r.proof.good) for r in results] == [(ReplayOutcome.DONE, True)] * 2
    after = [committed(shaky.kafka.bootstrap, "spread-killed", p)[0] for p in range(2)]
    assert Counter(map(repr, without_offsets(chain(*after)))) == Counter(map(repr, without_offsets(chain(*before))))
    for partition, records in enumerate(after):
        assert {slow_partition(key, 2) for _, _, key, *_ in records if key is not None} == {partition}
        keyed = [r for r in before[0] if r[2] is not None and slow_partition(r[2], 2) == partition]
        assert without_offsets(r for r in records if r[2] is not None) == without_offsets(keyed)
        assert len(records) == results[partition].records == sum(s.records for s in results[partition].sources)
    producer = shaky.topics.producer()
    producer.produce("spread-killed", b"foreign", None, 0)
    assert producer.flush(60) == 0
    failed = replay(unit, nothing).logs[0]
    assert (failed.outcome, [s.records for s in failed.sources]) == (ReplayOutcome.FOREIGN, [0, 0])


@pytest.fixture(scope="module")
def restored(shaky: Shaky, logs: Archived) -> tuple[ReplayLog, int]:
    """A partition with its share, and where it ends."""
    unit = _unit(shaky, logs, "spread-once")
    (result, _) = replay(msgspec.structs.replace(unit, prove=False), nothing).logs
    return unit.logs[0], result.end


def _proof(place: SourceRef, settings: ClientSettings, log: ReplayLog, end: int) -> LogProof:
    return prove(log, place, SettingsBrokers(settings), None, end, nothing)


def test_a_proof_is_of_exactly_this_share(logs: Archived, restored: tuple[ReplayLog, int]) -> None:
    """Another share, or a log too few, is refuted with the offset at which it shows."""
    log, end = restored
    place, settings = logs.archive.place, logs.target.settings
    proof = _proof(place, settings, log, end)
    assert proof.good
    assert sum(proof.shares) == proof.records == end
    fewer = _proof(place, settings, msgspec.structs.replace(log, sources=log.sources[:1]), end)
    assert (fewer.first_difference, fewer.detail) == (proof.shares[0], "there is a record after the last archived one")
    other = _proof(place, settings, msgspec.structs.replace(log, spread_over=3), end)
    assert 0 <= other.first_difference < proof.shares[0]
    short = _proof(place, settings, log, end - 1)
    assert short.first_difference == end - 1
    assert "the target ends before it" in short.detail


@pytest.mark.parametrize("part", [0.0, 0.1, 0.9, 1.0])
def test_the_beginning_of_a_share_is_compared(logs: Archived, restored: tuple[ReplayLog, int], part: float) -> None:
    """When a broker has forgotten our producer: as many records as there are, of as many logs as it takes."""
    log, end = restored
    place, there = logs.archive.place, int(end * part)
    begun = beginning_of(place, log, None, there)
    assert sum(len(records) for source in begun.sources for records in share_of(place, begun, source)) == there
    assert _proof(place, logs.target.settings, begun, there).good
