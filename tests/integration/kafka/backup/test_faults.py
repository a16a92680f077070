"""What a broker, its network and the store do while a backup runs: it ends well or fails cleanly, and the rest stays.

Every fault is shown to have happened in the middle of the copy: the proxy lets so many bytes through and holds the
rest back while the test acts.
"""

import os
import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import ClusterUnreachable, StoreDenied, StoreError
from logkeep.kafka.backup.values import KafkaBackupDone
from logkeep.store.retrying import RetryingStore, RetryLimits
from tests.e2e.test_bad_input import one_error
from tests.support.cli.filled_repository import Filled
from tests.support.faults.plan import Fault, Plan, Seeded, denied_403
from tests.support.faults.store import FaultyStore
from tests.support.kafka.backup_steps import add, assert_whole, beside, fill
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.processes import wait_for
from tests.support.servers.proxied_kafka import Shaky

pytestmark = pytest.mark.xdist_group("kafka-proxy")
MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def ample(shaky: Shaky) -> str:
    """More than one reply can hold: 24 MB in one partition."""
    return fill(shaky.topics, "ample", 1, 2400, size=10_000)


@contextmanager
def _in_the_middle(shaky: Shaky, archive: Archive, *topics: str) -> Iterator[list[KafkaBackupDone]]:
    """A backup that has got 12 MB and gets no more until the block ends; then it is finished."""
    done: list[KafkaBackupDone] = []
    with beside(lambda: archive.back_up(*topics)) as backup:
        with shaky.held_after(12 * MEGABYTE):
            assert not backup.done(), backup.result()
            yield done
        done.append(backup.result())


def _cut_round(shaky: Shaky, archive: Archive, topic: str, seed: int) -> int:
    before = shaky.proxy.cuts
    shaky.budget.most, shaky.budget.chance = 400_000, random.Random(seed)
    try:
        done = archive.back_up(topic)
    finally:
        shaky.budget.chance = None
    assert_whole(archive, shaky.kafka, done.entry.id)
    return shaky.proxy.cuts - before


def test_connections_that_break_all_the_time(shaky: Shaky, faulty: Archive) -> None:
    topic = fill(shaky.topics, "cut-off", 4, 1500)
    cuts = _cut_round(shaky, faulty, topic, 4711)
    print("connections cut:", cuts)
    assert cuts >= 20


@pytest.mark.soak
def test_connections_that_break_two_hundred_times(shaky: Shaky, tmp_path: Path) -> None:
    topic, rounds = fill(shaky.topics, "cut-off-often", 4, 1000), list[int]()
    for seed in range(100):
        rounds.append(_cut_round(shaky, Archive(shaky.bootstrap, new_place(tmp_path / f"{seed}")), topic, seed))
        if sum(rounds) >= 200:
            break
    print(f"connections cut: {sum(rounds)} in {len(rounds)} backups, {rounds}")
    assert sum(rounds) >= 200


def test_a_broker_that_dies_and_comes_back_during_the_copy(shaky: Shaky, faulty: Archive, ample: str) -> None:
    with _in_the_middle(shaky, faulty, ample) as done:
        shaky.kafka.kill()
        shaky.kafka.start()
    assert (done[0].findings, done[0].gaps) == ((), ())
    assert_whole(faulty, shaky.kafka, done[0].entry.id)


def _impatient(archive: Archive, directory: Path, timeout_ms: int) -> Archive:
    """The same with a client.properties that waits less long for an answer."""
    path = directory / "client.properties"
    path.write_text(f"request.timeout.ms={timeout_ms}\n")
    return replace(archive, client=path)


@contextmanager
def _stalled(kafka: EmbeddedKafka) -> Iterator[None]:
    """The broker keeps its connections and does nothing at all."""
    assert kafka.pid is not None
    os.kill(kafka.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(kafka.pid, signal.SIGCONT)


def test_a_broker_that_stalls_and_goes_on(shaky: Shaky, faulty: Archive, ample: str, tmp_path: Path) -> None:
    """Longer than a request may take: connections are given up and opened anew."""
    impatient = _impatient(faulty, tmp_path, 1000)
    with beside(lambda: impatient.back_up(ample)) as backup, ExitStack() as stall:
        with shaky.held_after(12 * MEGABYTE):
            before = shaky.proxy.accepted
            stall.enter_context(_stalled(shaky.kafka))
        wait_for(lambda: shaky.proxy.accepted >= before + 3, "the copy to try other connections")
        assert not backup.done()
        stall.close()
        done = backup.result()
    assert_whole(faulty, shaky.kafka, done.entry.id)


def test_a_broker_that_stalled_before_is_given_up(shaky: Shaky, tmp_path: Path) -> None:
    topic = fill(shaky.topics, "stalled", 1, 10)
    repo, config = Filled(tmp_path), tmp_path / "client.properties"
    archive = Archive(shaky.bootstrap, new_place(repo.root))
    first = archive.back_up(topic).entry.id
    config.write_text("request.timeout.ms=500\n")
    with _stalled(shaky.kafka):
        command = ("kafka", "backup", "--bootstrap-servers", shaky.bootstrap, "--source", "prod", "--topics", topic)
        said = one_error(repo.run(*command, "--command-config", str(config), code=51).stderr)
    assert "no answer in time" in said
    archive.check(first)
    assert repo.listed() == [first]


@pytest.mark.soak
def test_a_broker_that_stalls_for_ever_is_given_up(shaky: Shaky, faulty: Archive, ample: str, tmp_path: Path) -> None:
    first = faulty.back_up(fill(shaky.topics, "before-the-stall", 1, 10)).entry.id
    impatient = _impatient(faulty, tmp_path, 200)
    with beside(lambda: impatient.back_up(ample)) as backup, ExitStack() as stall:
        with shaky.held_after(12 * MEGABYTE):
            stall.enter_context(_stalled(shaky.kafka))
        error = backup.exception()
    assert isinstance(error, ClusterUnreachable), error
    assert error.exit_code == 51
    faulty.check(first)
    done = faulty.back_up(ample, resume=True)
    assert_whole(faulty, shaky.kafka, done.entry.id)


def test_throttling_is_obeyed_by_the_whole_backup(shaky: Shaky, faulty: Archive, ample: str) -> None:
    entity = ["--entity-type", "clients", "--entity-name", "logkeep"]
    command = ["--bootstrap-server", shaky.kafka.bootstrap, "--alter", *entity]
    tool = "kafka.admin.ConfigCommand"
    shaky.kafka.java_tool(tool, [*command, "--add-config", "consumer_byte_rate=6000000"])
    before = shaky.throttled.count
    try:
        done = faulty.back_up(ample)
    finally:
        shaky.kafka.java_tool(tool, [*command, "--delete-config", "consumer_byte_rate"])
    assert shaky.throttled.count > before, "never throttled"
    assert_whole(faulty, shaky.kafka, done.entry.id)


def _with_faults(archive: Archive, plan: Plan) -> Archive:
    """The same repository through a store that fails as planned, with the retries that every command has."""
    store = FaultyStore(archive.place.store, plan)
    patient = RetryingStore(store, RetryLimits(total_s=20, first_wait_s=0.001, longest_wait_s=0.01))
    return replace(archive, place=replace(archive.place, store=patient))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_store_with_passing_errors(shaky: Shaky, faulty: Archive, seed: int) -> None:
    """Now and then, anywhere: errors, and answers that are lost. A run that could not cure them is resumed."""
    topic = fill(shaky.topics, f"passing-{seed}", 3, 200)
    first = faulty.back_up(topic).entry.id
    add(shaky.topics, topic, 3, 200)
    hits: list[int] = []
    chance = Seeded(seed, 0.05)

    def plan(number: int, operation: str, name: str) -> Fault | None:
        fault = chance(number, operation, name)
        hits.extend([number] if fault else [])
        return fault

    shaken, attempts = _with_faults(faulty, plan), 0
    while True:
        attempts += 1
        try:
            done = shaken.back_up(topic, segment_bytes=50_000, resume=attempts > 1)
            break
        except StoreError:
            faulty.check(first)
            assert attempts < 20
    assert hits, "nothing failed"
    assert_whole(faulty, shaky.kafka, done.entry.id)
    faulty.check(first)


@pytest.mark.parametrize("part", [".log", ".index", ".parquet", "/manifest", "/commits/"])
def test_a_store_that_refuses_fails_the_backup_cleanly(shaky: Shaky, faulty: Archive, part: str) -> None:
    """One kind of object cannot be written."""
    topic = fill(shaky.topics, f"refused-{part.strip('./')}", 2, 100)
    first = faulty.back_up(topic).entry.id
    add(shaky.topics, topic, 2, 100)

    def plan(_number: int, operation: str, name: str) -> Fault | None:
        return denied_403() if operation in {"open_new", "put_new"} and part in name else None

    with pytest.raises(StoreDenied):
        _with_faults(faulty, plan).back_up(topic)
    faulty.check(first)
    done = faulty.back_up(topic)
    assert_whole(faulty, shaky.kafka, done.entry.id)
    faulty.check(first)
