"""Following a real broker: every round a restorable point, idle rounds leave nothing, signals end it cleanly."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta

import pytest
from confluent_kafka import TopicPartition

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.engine.inline import InlineEngine
from logkeep.engine.stop import SignalStop
from logkeep.errors import Locked
from logkeep.kafka.backup.values import KafkaBackupDone, KafkaBackupOptions
from logkeep.kafka.follow.run import FollowedCluster
from logkeep.model.time import random_token, utc_now
from logkeep.repository.backups.journal import open_ids
from logkeep.repository.chain.write_session import writing
from logkeep.repository.follow import MERGE_EVERY, Follower, FollowRound
from logkeep.store.local.store import LocalStore
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.copied_logs import on_disk
from tests.support.kafka.follow_process import following
from tests.support.kafka.topic_matrix import Matrix
from tests.support.kafka.whole_backups import Archive
from tests.support.processes import wait_for

pytestmark = pytest.mark.xdist_group("kafka-plain")


def _write(topics: Matrix, topic: str, records: int, size: int = 100) -> None:
    producer = topics.producer(batch_num_messages=10)
    for i in range(records):
        producer.produce(topic, os.urandom(size), b"%d" % i, 0)
    assert producer.flush(60) == 0


def _command(kafka: EmbeddedKafka, topic: str, *more: str) -> tuple[str, ...]:
    base = ("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, "--source", "prod", "--topics", topic)
    return (*base, "--interval", "200ms", *more)


def _names(repo: Filled) -> set[str]:
    """What is stored; what a round is writing at this moment has no name yet."""
    return {info.name for info in LocalStore(repo.root).list("")}


def test_every_round_is_a_restorable_point_and_idle_ones_leave_nothing(
    kafka: EmbeddedKafka, topics: Matrix, repo: Filled
) -> None:
    topic = topics.create("followed")
    archive = Archive(kafka.bootstrap, repo.place())
    with following(repo, _command(kafka, topic, "--metrics-file", "rounds.prom")) as run:
        for written in range(30, 151, 30):
            _write(topics, topic, 30)
            run.wait_for_offsets(written)
        idle = run.wait_for_rounds(2, changed=False)
        before = _names(repo)
        idle += run.wait_for_rounds(3, changed=False)
        assert _names(repo) == before, "a round without anything new left an object"
        assert {(d["id"], d["lag_offsets"], d["new_bytes"]) for d in idle} == {(idle[0]["id"], 0, 0)}
        assert 'logkeep_backup_lag_offsets{source="prod"} 0.0' in (repo.home / "rounds.prom").read_text()
        status = repo.json("status", "--max-age", "10m", "--max-lag", "0")["sources"][0]
        assert (status["newest_good"], status["lag_offsets"], status["breached"]) == (idle[0]["id"], 0, False)
        assert run.ended(signal.SIGTERM) == 0
        *_, last = run.documents()
    assert LocalStore(repo.root).stale_partials(utc_now() + timedelta(days=1)) == []
    ids = [d["id"] for d in run.rounds() if d["changed"]]
    assert (last["follow"]["committed"], last["new_offsets"], last["id"]) == (len(ids), 150, ids[-1])
    archive.check(*ids)
    for backup_id in ids:
        end = archive.cut(backup_id, topic).end
        assert archive.batches(backup_id, topic) == on_disk(kafka, topic, 0, 0, end)
    assert archive.cut(ids[-1], topic).end == 150


def _interrupted(kafka: EmbeddedKafka, topics: Matrix, repo: Filled, topic: str, *signals: int) -> int:
    """Signals in the middle of a round that takes six seconds more, because it may write only so fast."""
    topics.create(topic)
    _write(topics, topic, 400, 1000)
    with following(repo, _command(kafka, topic, "--limit-upload", "60KB", "--segment-bytes", "50KB")) as run:
        wait_for(lambda: any(repo.root.rglob("*.log")), "the middle of the round")
        assert run.rounds() == []
        for number in signals[:-1]:
            run.process.send_signal(number)
            run.wait_for_message("press Ctrl-C again")  # of two that come at once, Python may see the second one first
        return run.ended(signals[-1])


def test_the_first_signal_ends_the_round_and_commits(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    assert _interrupted(kafka, topics, repo, "first-signal", signal.SIGTERM) == 0
    archive = Archive(kafka.bootstrap, repo.place())
    (backup_id,) = repo.listed()
    assert archive.cut(backup_id, "first-signal").end == 400
    archive.check(backup_id)


def test_the_second_signal_gives_up_and_the_next_run_goes_on(
    kafka: EmbeddedKafka, topics: Matrix, repo: Filled
) -> None:
    assert _interrupted(kafka, topics, repo, "second-signal", signal.SIGINT, signal.SIGTERM) == 143
    (left,) = open_ids(repo.place(), 0)
    with following(repo, _command(kafka, "second-signal")) as run:
        run.wait_for_rounds(1, changed=True)
        assert run.ended(signal.SIGINT) == 0
    assert repo.listed() == [left], "the round that was given up is resumed under its id"
    archive = Archive(kafka.bootstrap, repo.place())
    assert archive.cut(left, "second-signal").end == 400
    archive.check(left)


def test_trouble_that_passes_is_told_and_a_gap_is_not_the_end(
    kafka: EmbeddedKafka, topics: Matrix, repo: Filled
) -> None:
    topic = topics.create("overtaken")
    _write(topics, topic, 40)
    with following(repo, _command(kafka, topic)) as run:
        run.wait_for_offsets(40)
        with _held(repo):
            (failed, *_) = run.wait_for_rounds(2, error="locked")
            assert (failed["id"], "prune" in failed["message"]) == (None, True)
            _write(topics, topic, 40)
            for future in topics.admin.delete_records([TopicPartition(topic, 0, 60)]).values():
                future.result(30)
            seen = len(run.rounds())
        run.wait_for_rounds(1, seen, changed=True)
        seen = len(run.rounds())
        _write(topics, topic, 10)
        run.wait_for_rounds(1, seen, changed=True)
        assert run.ended(signal.SIGTERM) == 21
        *_, last = run.documents()
    assert ["[40, 60)" in gap for gap in last["gaps"]] == [True]
    assert last["follow"]["failed"] >= 2
    archive = Archive(kafka.bootstrap, repo.place())
    archive.check(*repo.listed())
    assert archive.cut(repo.listed()[-1], topic).end == 90


@contextmanager
def _held(repo: Filled) -> Iterator[None]:
    """The lease in somebody else's hands; taken between two rounds, as prune would."""
    with ExitStack() as stack:

        def taken() -> bool:
            with suppress(Locked):
                stack.enter_context(writing(repo.place(), "prune", utc_now, random_token))
                return True
            return False

        wait_for(taken, "the lease")
        yield


def test_a_topic_that_retention_will_overtake_is_named(kafka: EmbeddedKafka, topics: Matrix, repo: Filled) -> None:
    """Records are kept for half a second, and each round takes longer than the next record."""
    topic, stop = topics.create("fleeting", config={"retention.ms": "500"}), threading.Event()

    def produce() -> None:
        producer = topics.producer(linger_ms=0)
        while not stop.wait(0.002):
            producer.produce(topic, b"gone soon", None, 0)
            producer.poll(0)
        producer.flush(30)

    writer = threading.Thread(target=produce)
    writer.start()
    try:
        with following(repo, _command(kafka, topic, "--allow-gaps")) as run:
            wait_for(lambda: any(d["threats"] for d in run.rounds()), "a warning")
            (threat,) = next(d["threats"] for d in run.rounds() if d["threats"])
            assert (threat["topic"], threat["overtaken_in_seconds"] <= 0.5) == (topic, True)
            assert run.ended(signal.SIGTERM) in (0, 2)
    finally:
        stop.set()
        writer.join()


def test_small_objects_are_merged_as_it_goes(topics: Matrix, archive: Archive) -> None:
    topic, stop, rounds = topics.create("as-it-goes"), SignalStop(soft=True), list[FollowRound[KafkaBackupDone]]()
    _write(topics, topic, 2)

    def tell(one: FollowRound[KafkaBackupDone]) -> None:
        rounds.append(one)
        if len(rounds) == MERGE_EVERY + 3:
            stop.request()
        else:
            _write(topics, topic, 2)

    options = KafkaBackupOptions(include=(topic,))
    with closing(FollowedCluster(archive.task, options, lambda _: InlineEngine(), 0.0)) as cluster:
        Follower(cluster, stop, 0.0, tell).run()
    assert [r.error for r in rounds if r.error] == []
    (merged,) = [r.merged for r in rounds if r.merged]
    assert (merged.objects_before, merged.objects_after, merged.findings) == (MERGE_EVERY, 1, ())
    ids = [r.done.entry.id for r in rounds if r.done]
    assert len(set(ids)) == MERGE_EVERY + 3
    archive.check(ids[0], ids[MERGE_EVERY // 2], ids[-1])
    (pieces,) = archive.segments(ids[-1]).values()
    assert (pieces[0].start, pieces[0].end) == (0, 2 * MERGE_EVERY)
    assert len(pieces) == 4


def test_what_makes_no_sense_together_is_refused(kafka: EmbeddedKafka, repo: Filled) -> None:
    for more in (("--dry-run",), ("--id", "7")):
        done = repo.run(*_command(kafka, "any"), "--follow", *more, code=40)
        assert more[0] in done.stderr
