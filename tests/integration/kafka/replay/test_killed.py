"""Attempts die anywhere and others go on: what an independent consumer reads afterwards is exact."""

import os
import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from logkeep.formats.kafka.restore.merge_batches import BatchMergeRule
from logkeep.kafka.admin.transactions import list_transactions
from logkeep.kafka.client.cluster import Cluster
from logkeep.kafka.client.settings import ClientSettings, endpoints
from logkeep.kafka.restore.facts.units import Offsets, ReplayOutcome, ReplayUnit
from logkeep.kafka.restore.replay.task import replay
from tests.integration.kafka.replay.attempts import KILLED, Attempts
from tests.integration.kafka.replay.conftest import Archived
from tests.support.kafka.replay_into_topics import Seen, committed, expected, nothing, without_offsets
from tests.support.processes import wait_for
from tests.support.servers.proxied_kafka import Shaky

pytestmark = pytest.mark.xdist_group("kafka-replay")
MERGED = BatchMergeRule(small_bytes=16 << 10, most_bytes=2500)
WAYS = (("smooth", Offsets.TRANSLATE), ("smooth", Offsets.PRESERVE), ("bumpy", Offsets.PRESERVE))


@dataclass
class Killing:
    """Replays of one archived topic into new ones, and what must be found there."""

    shaky: Shaky
    logs: Archived
    children: Attempts
    source: str
    offsets: Offsets
    wanted: list[Seen]
    rounds: int = 0
    usual_bytes: int = 0

    def unit(self) -> ReplayUnit:
        """Into a new topic, through the proxy."""
        self.rounds += 1
        unit = self.logs.target.unit(self.source, f"to-{self.source}-{self.offsets}-{self.rounds}", self.offsets)
        return msgspec.structs.replace(unit, settings=ClientSettings(endpoints(self.shaky.bootstrap)))

    def measure(self) -> "Killing":
        """How many bytes a replay that nothing happens to gets from the broker."""
        unit = self.unit()
        self.shaky.gate.close_after(1 << 40)
        self.children.start(unit)
        assert self.children.ended() == ReplayOutcome.DONE
        self.usual_bytes = (1 << 40) - self.shaky.gate.left
        self.shaky.gate.open()
        self.assert_exact(unit)
        return self

    def killed_after(self, unit: ReplayUnit, size_bytes: int) -> str:
        """Kill an attempt when so many bytes of the broker came to it; how it ended."""
        self.shaky.gate.close_after(size_bytes)
        try:
            self.children.start(unit)
            wait_for(lambda: self.shaky.gate.closed or self.children.over, "the hold")
            return self.children.kill()
        finally:
            self.shaky.gate.open()

    def assert_exact(self, unit: ReplayUnit) -> None:
        """One more attempt ends well, and everything is there once, in order."""
        (result,) = replay(unit, nothing).logs
        assert (result.outcome, result.detail) == (ReplayOutcome.DONE, "")
        seen, bounds = committed(self.shaky.kafka.bootstrap, result.topic, 0)
        if self.offsets is Offsets.PRESERVE:
            assert seen == self.wanted
            assert bounds == (unit.logs[0].first.start, unit.logs[0].first.end)
        else:
            assert without_offsets(seen) == without_offsets(self.wanted)
            assert bounds == (0, len(self.wanted))


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def killing(request: pytest.FixtureRequest, shaky: Shaky, logs: Archived, children: Attempts) -> Killing:
    source, offsets = request.param
    wanted = expected(shaky.kafka.bootstrap, logs.archive, logs.backup_id, source, 0)
    return Killing(shaky, logs, children, source, offsets, wanted).measure()


def _kill_at_random(killing: Killing, seed: int, kills: int) -> int:
    """So many attempts at one replay, each killed somewhere; how many were."""
    chance, unit, killed = random.Random(seed), killing.unit(), 0
    for _ in range(kills):
        killed += killing.killed_after(unit, chance.randrange(1, killing.usual_bytes)) == KILLED
    killing.assert_exact(unit)
    return killed


def test_attempts_are_killed_at_random_points(killing: Killing) -> None:
    assert _kill_at_random(killing, seed=1, kills=4) >= 2


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_attempts_are_killed_at_random_points(killing: Killing) -> None:
    killed, replays = 0, 0
    while killed < 36:
        assert replays < 60, f"only {killed} attempts were killed"
        killed += _kill_at_random(killing, seed=100 + replays, kills=4)
        replays += 1
    print(f"{killing.source} {killing.offsets}: {killed} attempts at {replays} replays killed, all of them exact")


def test_an_attempt_dies_after_each_request_with_merged_batches(
    shaky: Shaky, logs: Archived, children: Attempts
) -> None:
    """The next one goes on at a border of a merged batch: borders are decided by the plan, not by what was sent."""
    wanted = expected(shaky.kafka.bootstrap, logs.archive, logs.backup_id, "single", 0)
    killing = Killing(shaky, logs, children, "single", Offsets.TRANSLATE, wanted)
    request, ended = 0, KILLED
    while ended == KILLED:
        request += 1
        unit = logs.target.unit("single", f"request-{request}", Offsets.TRANSLATE, merge=MERGED)
        children.start(unit, dies_after=request)
        ended = children.ended()
        killing.assert_exact(unit)
    assert ended == ReplayOutcome.DONE
    assert 4 < request < len(logs.archive.batches(logs.backup_id, "single")) / 10


@pytest.mark.parametrize("dies_before", ["add_partitions", "filler_batches", "abort_transaction"])
def test_an_attempt_dies_in_a_hole_and_time_runs_out(
    shaky: Shaky, logs: Archived, children: Attempts, dies_before: str
) -> None:
    """Whoever aborts what it left open, the marker comes to stand in the hole."""
    wanted = expected(shaky.kafka.bootstrap, logs.archive, logs.backup_id, "bumpy", 0)
    killing = Killing(shaky, logs, children, "bumpy", Offsets.PRESERVE, wanted)
    unit = logs.target.unit("bumpy", f"timed-out-{dies_before}", Offsets.PRESERVE)
    children.start(unit, dies_before=dies_before, timeout_ms=1000)
    assert children.ended() == KILLED
    with Cluster(logs.target.settings) as cluster:
        mine = unit.logs[0].transactional_id
        (left,) = [t for t in list_transactions(cluster) if t.transactional_id == mine]
        assert (left.state != "Empty") == (dies_before != "add_partitions"), left
        wait_for(
            lambda: mine not in {t.transactional_id for t in list_transactions(cluster, states=_OPEN)}, "the abort"
        )
    killing.assert_exact(unit)


_OPEN = ("Ongoing", "PrepareAbort", "PrepareEpochFence")


def _stalled(killing: Killing, seed: int) -> bool:
    """A broker stands still with requests before it, their sender dies, and both go on: the broker and the next one.

    Whether the attempt was in the middle of it, with requests that the broker had not read when it died.
    """
    chance, unit = random.Random(seed), killing.unit()
    broker = killing.shaky.kafka.pid
    assert broker is not None
    killing.shaky.gate.close_after(chance.randrange(killing.usual_bytes // 3, killing.usual_bytes))
    killing.children.start(unit)
    wait_for(lambda: killing.shaky.gate.closed or killing.children.over, "the hold")
    os.kill(broker, signal.SIGSTOP)
    try:
        killing.shaky.gate.open()
        late = _late_requests(killing.shaky.kafka.inner_port)
        killed = killing.children.kill() == KILLED
    finally:
        os.kill(broker, signal.SIGCONT)
    killing.assert_exact(unit)
    return late and killed


def _late_requests(port: int) -> bool:
    """Whether some wait for the broker; else it has read all that the attempt may have in flight: either will do."""
    deadline = time.monotonic() + 1.0
    while not (unread := _unread(port)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return unread


def _unread(port: int) -> bool:
    """Whether bytes wait for a process that listens there, as the kernel tells it. Java's sockets are of both kinds."""
    tables = (Path("/proc/net", name).read_text() for name in ("tcp", "tcp6"))
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return any(int(row[1].rpartition(":")[2], 16) == port and int(row[4].rpartition(":")[2], 16) for row in rows)


def test_late_requests_of_a_dead_attempt(killing: Killing) -> None:
    _stalled(killing, seed=7)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_late_requests_of_dead_attempts(killing: Killing) -> None:
    late, rounds = 0, 0
    while late < 8:
        assert rounds < 40, f"only {late} attempts died with requests unread"
        late += _stalled(killing, seed=200 + rounds)
        rounds += 1
    print(
        f"{killing.source} {killing.offsets}: {rounds} rounds with a broker that stood still, all exact; in {late} of "
        "them requests were unread when their sender died"
    )
