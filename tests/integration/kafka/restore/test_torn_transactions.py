"""A point in time and transactions over two topics: what a restore tears is reported, or left out everywhere."""

import time

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.restore.plan.torn_transactions import TOGETHER_MS
from tests.integration.kafka.restore.drivers import Drivers, Point
from tests.integration.kafka.restore.scene import Scene, read
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.consumer_view import watermarks
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-restore")
T = 4_102_444_800_000
MOMENT = "2100-01-01T00:00:00Z"
"""T as it is typed: markers have the time at which they were written, which is earlier."""
TOPICS = ("paid", "shipped")


@pytest.fixture(scope="module")
def backed(
    kafka: EmbeddedKafka, target: EmbeddedKafka, topics: Matrix, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    """Three transactions over both topics, by librdkafka."""
    repo = Filled(tmp_path_factory.mktemp("torn") / "home")
    repo.home.mkdir()
    share_kernels(repo.home)
    new_place(repo.root)
    for topic in TOPICS:
        topics.create(topic, 1, {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)})
    producer = topics.producer(transactional_id="shop", transaction_timeout_ms=60_000)
    producer.init_transactions(30)
    for number, (paid, shipped) in enumerate(((-9, -8), (-2, 1), (5, 6))):
        producer.begin_transaction()
        producer.produce("paid", f"order {number}", partition=0, timestamp=T + paid)
        producer.produce("shipped", f"order {number}", partition=0, timestamp=T + shipped)
        producer.commit_transaction(30)
        for topic in TOPICS:
            _ends_at(kafka, topic, 2 * number + 2)
        _pause_clearly()
    scene = Scene(kafka, target, topics, repo)
    scene.back_up(*TOPICS)
    return scene


def _ends_at(kafka: EmbeddedKafka, topic: str, end: int) -> None:
    """Markers come when the transaction has ended for its client already."""
    wait_for(lambda: watermarks(kafka.bootstrap, topic, 0)[1] == end, "the marker")


def _pause_clearly() -> None:
    """Markers that are further apart than this belong to different transactions for certain."""
    after_s = time.time() + TOGETHER_MS / 1000 + 0.1
    wait_for(lambda: time.time() > after_s, "the pause between two transactions")


def _orders(scene: Scene, suffix: str) -> list[list[str]]:
    return [read(scene.target, f"{topic}.{suffix}") for topic in TOPICS]


CUTS = {
    "time": ("--until-time", MOMENT),
    "record": ("--until-time", MOMENT, "--by-record"),
    "offset": ("--until-offset", "shipped:0=2"),
}
"""A time falls into the second transaction; that offset is before all of the second and third in one topic."""


def _words(suffix: str, cut: str) -> tuple[str, ...]:
    return ("--rename", f"s/$/.{suffix}/", *CUTS[cut])


@pytest.mark.parametrize("cut", CUTS)
def test_torn_transactions_are_reported(backed: Scene, cut: str) -> None:
    """In the plan, by the run and in the receipt, with the producer and the partitions."""
    words = (*_words(cut, cut), "--offsets", "translate")
    planned = backed.restore(*words, "--dry-run", code=2)
    done = backed.restore(*words, code=2)
    receipt = backed.commands.json("receipts", "show", str(done["restore"]))
    assert done["verdict"] == "proven"
    paid, shipped = _orders(backed, cut)
    assert len(paid) - len(shipped) == (2 if cut == "offset" else 1)
    for findings in (planned["findings"], done["findings"], receipt["findings"]):
        (found,) = [f for f in findings if f["severity"] == "warning"]
        assert found["code"] in ("transaction-torn", "transaction-possibly-torn")
        assert found["where"].startswith("producer ")
        assert "paid/0" in found["what"]
        assert "missing in " in found["what"]
        assert "shipped/0" in found["what"]


@pytest.mark.parametrize("cut", CUTS)
def test_whole_leaves_them_out_everywhere(backed: Scene, cut: str) -> None:
    done = backed.restore(*_words(f"whole.{cut}", cut), "--transactions", "whole")
    assert done["verdict"] == "proven"
    paid, shipped = _orders(backed, f"whole.{cut}")
    assert paid == shipped
    assert set(paid) <= {"order 0"}
    assert {f["code"] for f in done["findings"] if f["code"].startswith("transaction")} == {"transaction-left-out"}


def test_producer_and_epoch_identify_those_of_a_java_client(scene: Scene) -> None:
    """With transaction.version 2, however quickly they follow each other."""
    topic = scene.topics.create("java-transactions", 2)
    props = [f"bootstrap.servers={scene.kafka.bootstrap}", "linger.ms=0", "batch.size=100"]
    words = ["--num-records", "200", "--record-size", "80", "--throughput", "400", "--transaction-duration-ms", "25"]
    tool = "org.apache.kafka.tools.ProducerPerformance"
    scene.kafka.java_tool(tool, ["--topic", topic, *words, "--transactional-id", "j", "--producer-props", *props])
    scene.back_up(topic)
    done = scene.restore("--rename", "s/$/.torn/", "--until-offset", f"{topic}:1=0", "--dry-run", code=2)
    (found,) = [f for f in done["findings"] if f["severity"] == "warning"]
    assert (found["code"], f"restored in {topic}/0, missing in {topic}/1" in found["what"]) == (
        "transaction-torn",
        True,
    )


def test_a_resumed_restore_leaves_out_the_same(backed: Scene, forks: Drivers) -> None:
    words = (*_words("resumed", "time"), "--transactions", "whole", "--yes")
    ended = forks.run(backed.commands, *backed.restore_words(*words), point=Point("request", 1, "Produce"))
    assert ended.killed
    (restore_id,) = [r["id"] for r in backed.commands.json("receipts", "list")["restores"] if r["state"] == "ongoing"]
    done = backed.restore("--resume", str(restore_id))
    assert done["verdict"] == "proven"
    paid, shipped = _orders(backed, "resumed")
    assert paid == shipped
    assert set(paid) <= {"order 0"}
    assert "transaction-left-out" in [f["code"] for f in done["findings"]]


def test_a_cut_between_transactions_tears_nothing(backed: Scene) -> None:
    done = backed.restore(*_words("between", "offset"), "--until-offset", "paid:0=2")
    assert not [f for f in done["findings"] if f["code"].startswith("transaction")]
    assert _orders(backed, "between") == [["order 0"], ["order 0"]]


@pytest.mark.parametrize(
    ("words", "why"),
    (
        (("--to-log-dirs", ".", "--until-time", MOMENT), "--transactions is only for a running cluster"),
        ((), "needs records and a point in time"),
        (("--until-time", MOMENT, "--what", "configs"), "needs records and a point in time"),
    ),
)
def test_where_they_cannot_be_left_out_it_is_refused(backed: Scene, words: tuple[str, ...], why: str) -> None:
    known = ("--bootstrap-servers", backed.target.bootstrap) if "--to-log-dirs" not in words else ()
    assert why in backed.commands.error(
        "kafka", "restore", "latest", *words, *known, "--transactions", "whole", code=40
    )
