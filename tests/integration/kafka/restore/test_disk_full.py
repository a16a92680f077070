"""The target's disk is full in the middle of a restore: said where and what to do; with room again, it goes on."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.kafka.restore import write
from logkeep.kafka.restore.facts.units import ReplayResult, ReplayUnit
from logkeep.kafka.restore.replay.task import ReplayTiming, replay
from logkeep.model.cache import cache_dir
from logkeep.model.work import Progress
from tests.e2e.test_bad_input import one_error
from tests.integration.kafka.restore.scene import Scene, log_end, troubles
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.client_view_of_configs import own_configs
from tests.support.kafka.clock_ahead import ClockAhead
from tests.support.kafka.command_in_process import Said
from tests.support.kafka.consumer_view import seen, watermarks
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import new_place
from tests.support.servers.small_disk_kafka import CrampedKafka

pytestmark = pytest.mark.xdist_group("kafka-restore")
TOPIC = "roomy"
RECORDS, FEW, RECORD_BYTES = 1800, 20, 10_000
LIMIT_BYTES = 12_000_000
"""Less than the first partition, more than an index, for which Kafka takes ten million at once."""


@pytest.fixture(scope="module")
def repo(kafka: EmbeddedKafka, topics: Matrix, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A backup of one large partition and one small one."""
    made = Filled(tmp_path_factory.mktemp("disk-full") / "home")
    made.home.mkdir()
    share_kernels(made.home)
    new_place(made.root)
    topics.create(TOPIC, 2)
    producer = topics.producer(batch_num_messages=10)
    for partition, records in enumerate((RECORDS, FEW)):
        for i in range(records):
            producer.produce(TOPIC, os.urandom(RECORD_BYTES), b"%d" % i, partition)
            producer.poll(0)
    assert producer.flush(60) == 0
    Scene(kafka, kafka, topics, made).back_up(TOPIC)
    return made


@pytest.fixture(params=(False, True), ids=("the-broker-stops", "one-directory-fails"))
def cramped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CrampedKafka]:
    cache = cache_dir(os.environ, Path.home())
    with CrampedKafka(tmp_path / "broker", cache, two_directories=request.param) as running:
        yield running


def _impatient(unit: ReplayUnit, progress: Progress) -> ReplayResult:
    """The task as it is, but for the minutes that it would wait for the broker."""
    clock = ClockAhead()
    return replay(unit, progress, ReplayTiming(pause=clock.pause, clock=clock))


def _until_full(scene: Scene, target: CrampedKafka, monkeypatch: pytest.MonkeyPatch) -> Said:
    target.allow(LIMIT_BYTES)
    with monkeypatch.context() as patched:
        patched.setattr(write, "replay", _impatient)
        return scene.commands.say(*scene.restore_words("--offsets", "preserve", "--yes"))


def _assert_told(scene: Scene, target: CrampedKafka, restore_id: str) -> None:
    """Which partition, which broker, what it said, and what to do."""
    receipt = scene.commands.json("receipts", "show", restore_id)
    found = {each["where"]: each for each in troubles(receipt)}
    full = found[f"{TOPIC}/0"]
    assert (receipt["restore"]["state"], full["code"]) == ("failed", "disk-failed")
    assert "broker 1 did not append a batch for offset " in full["what"]
    assert "(56)" in full["what"], "Kafka's own name of it"
    assert "make room on that broker's disk" in full["remedy"]
    assert "--resume" in full["remedy"]
    apart = target.two_directories and target.place_of(TOPIC, 0) != target.place_of(TOPIC, 1)
    assert set(found) == ({f"{TOPIC}/0"} if apart else {f"{TOPIC}/0", f"{TOPIC}/1"})


def _assert_told_of_the_stop(target: CrampedKafka, ended: Said) -> None:
    """With its last directory a broker stops at once, now and then before its answer has left: that is all we know."""
    assert not target.two_directories
    said = one_error(ended.err)
    assert target.bootstrap in said
    assert "a full disk stops a broker" in said


def test_it_is_said_and_gone_on_from(
    kafka: EmbeddedKafka, topics: Matrix, repo: Filled, cramped: CrampedKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(kafka, cramped, topics, repo)
    ended = _until_full(scene, cramped, monkeypatch)
    restore_id = str(scene.commands.json("receipts", "list")["restores"][-1]["id"])
    assert f"--resume {restore_id}" in ended.err, "whoever was stopped must know how to go on"
    assert ended.code in {30, 51}, ended
    if ended.code == 30:
        _assert_told(scene, cramped, restore_id)
    else:
        _assert_told_of_the_stop(cramped, ended)

    cramped.stop()
    cramped.start()
    there = log_end(cramped, TOPIC, 0)
    assert 0 < there < RECORDS, "it was not full in the middle"
    assert own_configs(cramped, TOPIC)["retention.ms"] == "-1", "a topic that is not whole has its own configs"
    again = scene.restore("--resume", restore_id)
    assert (again["verdict"], troubles(again)) == ("proven", [])
    for partition in (0, 1):
        assert seen(cramped.bootstrap, TOPIC, partition) == seen(kafka.bootstrap, TOPIC, partition)
        assert watermarks(cramped.bootstrap, TOPIC, partition) == watermarks(kafka.bootstrap, TOPIC, partition)
