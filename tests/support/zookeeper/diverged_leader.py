"""An ensemble whose leader logged what nobody committed, was away, and got a snapshot from those who went on."""

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from logkeep.embedded.zookeeper import EmbeddedZooKeeper, ZooKeeperRelease
from tests.support.processes import wait_for
from tests.support.servers.zookeeper_ensemble import ZooKeeperEnsemble, ZooKeeperMember, running
from tests.support.zookeeper import raw_client as raw
from tests.support.zookeeper.recorded_moments import JAVA
from tests.support.zookeeper.running_servers import CACHE
from tests.support.zookeeper.server_files import logs
from tests.support.zookeeper.slow_log import good_records
from tests.support.zookeeper.tree_judge import logged
from tests.support.zookeeper.tree_recorder import Recording, record, zxid_of

BEFORE, NEVER, MEANWHILE, LATER = "/before", "/never", "/meanwhile", "/later"
_SESSION_MS = 120_000
"""The session that asks for what nobody commits sends nothing meanwhile: its end would be logged instead."""
_PATIENT = {"preAllocSize": "64", "syncLimit": "240", "maxSessionTimeout": str(_SESSION_MS)}
"""So long a leader goes on while no follower answers: it must log something in that time."""
_BY_SNAPSHOT = "-Dzookeeper.forceSnapshotSync=true"
_CHANGES = 600
"""More than a leader keeps in memory: 3.4 sends a snapshot to whoever was away for longer."""


@dataclass(frozen=True)
class Parted:
    """Stopped. Of its voters one is `synced`; the observer was never started."""

    synced: ZooKeeperMember
    others: tuple[ZooKeeperMember, ...]
    never: int
    """The transaction that it alone had logged, last of its epoch."""
    joined: int
    """Where the others were when it came back: it got no transaction of theirs up to here."""
    truth: Recording
    """What all showed at the end."""


def parted(home: Path, version: str) -> Parted:
    ensemble = ZooKeeperEnsemble(home, CACHE, ZooKeeperRelease(version), _PATIENT, (*JAVA, _BY_SNAPSHOT))
    voters = ensemble.voters
    with running(*voters):
        synced = ensemble.leader()
        others = tuple(voter for voter in voters if voter is not synced)
        never = _logged_alone(synced, others)
    with running(*others):
        _write(others[0], raw.create(MEANWHILE, b""), *[raw.set_data(MEANWHILE, b"x")] * _CHANGES)
        wait_for(lambda: len({zxid_of(other.client) for other in others}) == 1, "the others to be at one zxid")
        joined = zxid_of(others[0].client)
        with running(synced):
            _write(synced, raw.create(LATER, b""))
            truth = record(synced.client, synced.password)
            assert logged(record(others[0].client, synced.password).nodes) == logged(truth.nodes)
    return Parted(synced, others, never, joined, truth)


def _write(member: ZooKeeperMember, *ops: raw.Op) -> None:
    with raw.RawSession(member.client, password=member.password) as client:
        client.must(*ops)


def _logged_alone(leader: ZooKeeperMember, others: Sequence[ZooKeeperMember]) -> int:
    """All are killed when the leader has written down what the others, which stand still, never read."""
    client = raw.RawSession(leader.client, timeout_ms=_SESSION_MS, password=leader.password)
    client.must(raw.create(BEFORE, b""))
    committed = zxid_of(leader.client)
    wait_for(lambda: {last_logged(each) for each in (leader, *others)} == {committed}, "all to have logged it")
    for other in others:
        assert other.pid is not None
        os.kill(other.pid, signal.SIGSTOP)
    wait_for(lambda: all(_stands_still(other) for other in others), "the others to stand still")
    client.send([raw.create(NEVER, b"")])
    wait_for(lambda: last_logged(leader) > committed, "the leader to log it")
    for member in (leader, *others):
        member.kill()
    client.abandon()
    assert last_logged(leader) == committed + 1
    assert {last_logged(other) for other in others} == {committed}
    return committed + 1


def _stands_still(member: ZooKeeperMember) -> bool:
    """All of its threads. One that ends meanwhile does not."""
    try:
        tasks = [task.read_text() for task in Path(f"/proc/{member.pid}/task").glob("*/stat")]
    except OSError:
        return False
    return all(task.rpartition(")")[2].split()[0] == "T" for task in tasks)


def last_logged(member: EmbeddedZooKeeper) -> int:
    """0 for a member that has logged nothing yet."""
    return max(
        (found.zxid for path in logs(member.log_dir)[-1:] for found in good_records(path.read_bytes())), default=0
    )
