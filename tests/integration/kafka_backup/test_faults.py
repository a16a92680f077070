"""What goes wrong while a backup runs: it ends in success or in a clean failure, and earlier backups stay whole."""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka, free_ports
from logkeep.formats.kafka_log import walk
from logkeep.model.ids import BackupId
from logkeep.repository.journal import open_ids, receipts
from logkeep.spark.cache import cache_dir
from tests.integration.processes import program, wait_for
from tests.kafka.archive import on_disk
from tests.kafka.matrix import BROKER, Matrix
from tests.kafka.whole import Archive, new_place
from tests.servers.tcp_proxy import CuttingProxy

pytestmark = pytest.mark.xdist_group("kafka")
PROGRAM = "tests.integration.kafka_backup.backup_program"


class Budget:
    """How much a connection may bring; nothing is cut until a test says so."""

    def __init__(self) -> None:
        self.chance: random.Random | None = None
        self.most = 0

    def __call__(self) -> int | None:
        return self.chance.randrange(1, self.most) if self.chance else None


@dataclass(frozen=True)
class Shaky:
    """A broker behind a proxy."""

    kafka: EmbeddedKafka
    proxy: CuttingProxy
    budget: Budget
    bootstrap: str
    topics: Matrix


@pytest.fixture(scope="module")
def shaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaky]:
    (port,) = free_ports(1)
    properties = BROKER | {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    directory, cache = tmp_path_factory.mktemp("shaky"), cache_dir(os.environ, Path.home())
    with EmbeddedKafka(directory / "broker", cache, properties=properties) as kafka:
        budget = Budget()
        with CuttingProxy(port, kafka.port, budget) as proxy:
            yield Shaky(kafka, proxy, budget, f"127.0.0.1:{port}", Matrix(kafka))


@pytest.fixture
def faulty(shaky: Shaky, tmp_path: Path) -> Archive:
    return Archive(shaky.bootstrap, new_place(tmp_path / "repository"))


def _fill(topics: Matrix, topic: str, partitions: int, records: int, size: int = 1000) -> str:
    topics.create(topic, partitions)
    producer = topics.producer(batch_num_messages=20)
    for i in range(records * partitions):
        producer.produce(topic, os.urandom(size), None, i % partitions)
        producer.poll(0)
    producer.flush(60)
    return topic


def _whole(archive: Archive, kafka: EmbeddedKafka, backup_id: int) -> None:
    for log, cut in archive.cuts(backup_id).items():
        found = archive.batches(backup_id, log.topic, log.partition)
        assert found == on_disk(kafka, log.topic, log.partition, cut.start, cut.end), str(log)
    archive.check(backup_id)


def _cut_round(shaky: Shaky, archive: Archive, seed: int) -> int:
    before = shaky.proxy.cuts
    shaky.budget.most, shaky.budget.chance = 400_000, random.Random(seed)
    try:
        done = archive.back_up("cut-off")
    finally:
        shaky.budget.chance = None
    _whole(archive, shaky.kafka, done.entry.id)
    return shaky.proxy.cuts - before


def test_connections_that_break_all_the_time(shaky: Shaky, faulty: Archive) -> None:
    _fill(shaky.topics, "cut-off", 4, 1000)
    assert _cut_round(shaky, faulty, 4711) >= 10


@pytest.mark.soak
def test_connections_that_break_two_hundred_times(shaky: Shaky, tmp_path: Path) -> None:
    _fill(shaky.topics, "cut-off", 4, 1000)
    cuts = 0
    for seed in range(100):
        cuts += _cut_round(shaky, Archive(shaky.bootstrap, new_place(tmp_path / f"{seed}")), seed)
        if cuts >= 200:
            break
    print("connections cut:", cuts)
    assert cuts >= 200


def test_a_broker_that_dies_and_comes_back_during_the_copy(shaky: Shaky, faulty: Archive, tmp_path: Path) -> None:
    topic = _fill(shaky.topics, "restarted", 2, 2000)
    root = tmp_path / "repository"
    with program([PROGRAM, shaky.bootstrap, str(root), "new", "1", topic], tmp_path) as run:
        wait_for(lambda: any(root.rglob("*.log*")) or run.poll() is not None, "the copy")
        shaky.kafka.kill()
        shaky.kafka.start()
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    _whole(faulty, shaky.kafka, int(said.split()[0]))


def _logs(shaky: Shaky, topic: str) -> list[Path]:
    return sorted((shaky.kafka.directory / "data" / f"{topic}-0").iterdir())


def test_a_log_that_lost_its_end_begins_a_new_history(shaky: Shaky, faulty: Archive) -> None:
    """As after an unclean election: the broker comes back with less than it had, and goes on from there."""
    topic = _fill(shaky.topics, "truncated", 1, 100)
    first = faulty.back_up(topic).entry.id
    old = faulty.batches(first, topic)
    shaky.kafka.kill()
    (log,) = [path for path in _logs(shaky, topic) if path.suffix == ".log"]
    data = log.read_bytes()
    log.write_bytes(data[: int(walk(data).batches.positions[2])])
    for path in _logs(shaky, topic):
        if path.suffix in {".index", ".timeindex", ".snapshot", ".txnindex"} or path.name == "leader-epoch-checkpoint":
            path.unlink()
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (shaky.kafka.directory / "data" / name).unlink(missing_ok=True)
    shaky.kafka.start()
    producer = shaky.topics.producer(batch_num_messages=20)
    for _ in range(200):
        producer.produce(topic, b"after the accident", None, 0)
    producer.flush(60)
    done = faulty.back_up(topic)
    assert [f.code for f in done.findings] == ["new-history"]
    histories = [faulty.cut(i, topic).log.history for i in (first, done.entry.id)]
    assert histories[1] == f"{histories[0]}-1"
    _whole(faulty, shaky.kafka, done.entry.id)
    assert faulty.batches(first, topic) == old
    faulty.check(first)
    third = faulty.back_up(topic)
    assert (third.findings, third.plan.units) == ((), ())
    _whole(faulty, shaky.kafka, third.entry.id)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("grows", [False, True])
def test_a_killed_run_is_resumed_with_what_it_had(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive, tmp_path: Path, seed: int, grows: bool
) -> None:
    topic = _fill(topics, f"killed-{seed}-{grows}", 6, 300)
    root, chance = tmp_path / "repository", random.Random(seed)
    wanted = chance.randrange(1, 6)
    with program([PROGRAM, kafka.bootstrap, str(root), "new", "1", topic], tmp_path) as run:
        wait_for(lambda: len(list(root.rglob("journal/*"))) >= wanted, "receipts")
        run.kill()
    (left,) = open_ids(archive.place, 0)
    had = {s.token for r in receipts(archive.place, left) for s in r.segments}
    assert had
    if grows:
        producer = topics.producer()
        for partition in range(6):
            producer.produce(topic, b"more", None, partition)
        producer.flush(30)
    with program([PROGRAM, kafka.bootstrap, str(root), "resume", "1", topic], tmp_path) as run:
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    assert int(said.split()[0]) == left
    _whole(archive, kafka, left)
    kept = {s.token for some in archive.segments(BackupId(left)).values() for s in some}
    assert had <= kept, "what had a receipt was copied again"


def test_five_hundred_partitions_are_few_units(
    kafka: EmbeddedKafka, topics: Matrix, archive: Archive, tmp_path: Path
) -> None:
    topic = _fill(topics, "many", 500, 4, size=100)
    root = tmp_path / "repository"
    with program([PROGRAM, kafka.bootstrap, str(root), "new", "500", topic], tmp_path) as run:
        said, complaint = run.communicate()
    assert run.returncode == 0, complaint
    backup_id, units, peak_kb = map(int, said.split())
    print("peak memory:", peak_kb, "kB")
    assert units <= 2
    assert peak_kb < 400_000
    assert len(archive.cuts(backup_id)) == 500
    _whole(archive, kafka, backup_id)
