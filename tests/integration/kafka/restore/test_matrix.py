"""Topics of every shape, backed up and restored to an empty cluster: independent consumers see no difference.

Two of them: librdkafka, and Apache's console consumer.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from logkeep.embedded.kafka import EmbeddedKafka
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.console_consumer import Lines, printed, without_offsets
from tests.support.kafka.consumer_view import Seen, seen, watermarks
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.matrix_broker import stop_cleaning
from tests.support.kafka.slow_partitioner import slow_partition
from tests.support.kafka.topic_matrix import Matrix, let_go
from tests.support.kafka.whole_backups import new_place

pytestmark = pytest.mark.xdist_group("kafka-restore")


@dataclass(frozen=True)
class Written:
    """The matrix, a backup of it, and what a consumer saw of it."""

    repo: Filled
    matrix: Matrix
    records: dict[tuple[str, int], dict[int, Seen]]
    bounds: dict[tuple[str, int], tuple[int, int]]
    printed: Lines


@pytest.fixture(scope="module")
def written(kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    matrix = Matrix(kafka)
    matrix.codecs()
    matrix.java()
    matrix.shapes()
    matrix.append_time()
    matrix.large()
    matrix.later_start()
    _compact(kafka, matrix)
    held: Producer = matrix.transactions(transaction_timeout_ms=800_000)
    matrix.create("empty", 2)
    repo = Filled(tmp_path_factory.mktemp("matrix") / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    chosen = [word for topic in matrix.topics for word in ("--topics", topic)]  # others are on this broker, too
    repo.json("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", *chosen, code=0)
    logs = [(topic, p) for topic, partitions in matrix.topics.items() for p in range(partitions)]
    records = {log: seen(kafka.bootstrap, *log) for log in logs}
    bounds = {log: watermarks(kafka.bootstrap, *log) for log in logs}
    yield Written(repo, matrix, records, bounds, printed(kafka, records))
    let_go(held)


def _compact(kafka: EmbeddedKafka, matrix: Matrix) -> None:
    matrix.compacted()
    while True:
        records = seen(kafka.bootstrap, "compacted", 0)
        start, end = watermarks(kafka.bootstrap, "compacted", 0)
        if len(records) < (end - start) // 2:
            break
        matrix.stir()
    stop_cleaning(matrix, kafka)


def _restore(written: Written, target: EmbeddedKafka, *more: str, code: int = 0) -> dict[str, object]:
    return written.repo.json(
        "kafka",
        "restore",
        "latest",
        "--source",
        "prod",
        "--bootstrap-servers",
        target.bootstrap,
        "--yes",
        "--keep-all",
        *more,
        code=code,
    )


def test_offsets_preserved(written: Written, target: EmbeddedKafka) -> None:
    """Order, time, key, value, headers and offset, log start and log end."""
    done = _restore(written, target, "--offsets", "preserve")
    assert done["verdict"] == "proven"
    for log, expected in written.records.items():
        assert seen(target.bootstrap, *log) == expected, log
        start, end = written.bounds[log]
        assert watermarks(target.bootstrap, *log) == (start, end), log
    assert sum(map(len, written.printed.values())) == sum(map(len, written.records.values()))
    assert printed(target, written.records) == written.printed


def test_offsets_translated(written: Written, target: EmbeddedKafka) -> None:
    """Order, time, key, value, headers; and the map in the receipt says where each record stands."""
    done = _restore(written, target, "--offsets", "translate", "--rename", "s/^/moved-/")
    assert done["verdict"] == "proven"
    for (topic, partition), expected in written.records.items():
        found = seen(target.bootstrap, f"moved-{topic}", partition)
        assert list(found.values()) == list(expected.values()), topic
        assert list(found) == list(range(len(expected))), topic
    assert without_offsets(printed(target, written.records, "moved-")) == without_offsets(written.printed)


def test_repartitioned(written: Written, target: EmbeddedKafka) -> None:
    """Every record once, in the partition of its key, those of a key in their order; whatever batches they were in."""
    topics = ("codecs", "compacted", "transactions", "shapes", "append-time", "later-start")
    wanted = [argument for topic in topics for argument in ("--topics", topic, "--repartition", f"{topic}=3")]
    done = _restore(written, target, *wanted, "--rename", "s/^/by-key-/")
    assert (done["verdict"], done["offsets"]) == ("proven", "translate")
    for topic in topics:
        before = [r for log, records in sorted(written.records.items()) if log[0] == topic for r in records.values()]
        found = [list(seen(target.bootstrap, f"by-key-{topic}", p).values()) for p in range(3)]
        after = [record for records in found for record in records]
        assert sorted(after, key=repr) == sorted(before, key=repr), topic
        for partition, records in enumerate(found):
            assert {slow_partition(r.key, 3) for r in records if r.key is not None} <= {partition}, topic
        for key in {r.key for r in before if r.key is not None}:
            assert [r for r in after if r.key == key] == [r for r in before if r.key == key], (topic, key)
