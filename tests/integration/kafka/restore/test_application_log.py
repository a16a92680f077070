"""The log of an application on a real broker keeps every promise of a log, and what crashes leave in it is not read."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from logkeep.application.data_directory import open_directory
from logkeep.application.kafka_log.group_runtime import member_id
from logkeep.application.kafka_log.inbox import InboxSender, KafkaInbox
from logkeep.application.kafka_log.kafka_log import KafkaLog
from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.checkpoint.conformance.log_checks import run_log_checks
from logkeep.checkpoint.file_log.file_log import FileLog
from logkeep.checkpoint.partition_copy import PartitionCopy
from logkeep.checkpoint.records import command
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import PartitionFenced, TargetUnsafe
from logkeep.model.time import utc_now
from tests.support.kafka.application_processes import killed_itself
from tests.support.kafka.bank_on_kafka import BankOnKafka
from tests.support.processes import wait_for
from tests.support.running_application import copies, ended

pytestmark = pytest.mark.xdist_group("kafka-restore")


class _OpenedLog(KafkaLog):
    """With an inbox of its own."""

    def __init__(self, kafka: EmbeddedKafka, name: str) -> None:
        config, topics = {"bootstrap.servers": kafka.bootstrap}, ApplicationTopics(name)
        ensure_topics(config, topics, 1)
        super().__init__(config, topics, 0, KafkaInbox(config, topics, 0, InboxSender(config, topics), lambda _: None))


def test_a_log_on_kafka_keeps_every_promise(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    outcomes = run_log_checks(lambda directory: _OpenedLog(kafka, f"promises-{directory.name}"), tmp_path)
    assert len(outcomes) == 7
    assert [(one.title, one.problem) for one in outcomes if one.problem] == []


def test_s1_s4_s6_s8_leaders_on_kafka_are_killed_and_follow_each_other(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    bank = BankOnKafka(kafka.bootstrap, tmp_path, "bank-of-leaders")
    with bank.running("data", hold_at="0/log end"):
        bank.work(4)
        bank.begin(4)
        bank.created(4)
        bank.work(2)
    bank.forget_state()
    with bank.running("data", hold_at="0/copy: open the store"):
        settled = ended(bank.place, 4)  # S4: created was committed while the copy was under way
        assert (settled.state, "the leader" in settled.reason, bank.outcomes(4)) == ("failed", True, ["failed"])
        bank.begin(5)
        bank.created(5)
    with bank.running("data", kill_at="0/before created", hold_at="0/copy: open the store") as process:
        assert (ended(bank.place, 5).state, bank.outcomes(5)) == ("failed", ["failed"])  # S6: no copy was begun
        create = bank.begin(6, (0,))
        assert killed_itself(process)
    with bank.running("data"):
        for partition in (0, 1):
            bank.port.create(partition, create)  # the coordinator repeats what was not answered
        assert (ended(bank.place, 6).state, bank.outcomes(6)) == ("completed", ["completed"])  # S1
        _check_store_errors(bank)
        assert [bank.port.state(f"a{number}") for number in range(4)] == [b"\xfe", b"\xfe", b"\xff", b"\xff"]


def test_s2_s3_s5_s7_leaders_on_kafka_whose_state_is_kept(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    bank = BankOnKafka(kafka.bootstrap, tmp_path, "bank-of-states")
    with bank.running("data", hold_at="0/log end"):
        bank.work(4)
        bank.begin(4)
        bank.created(4)
        bank.work(2)
    with bank.running("data", hold_at="0/copy: open the store"):
        assert (ended(bank.place, 4).state, bank.outcomes(4)) == ("failed", ["failed"])  # S5: no replay of created
        bank.begin(5)
        bank.created(5)
    with bank.running("data", kill_at="0/log end", hold_at="0/before created") as process:
        assert (ended(bank.place, 5).state, bank.outcomes(5)) == ("failed", ["failed"])  # S7
        create = bank.begin(6, (0,))
        assert killed_itself(process)
        assert bank.outcomes(6) == []  # S2: a part of a copy is left
    with bank.running("data", kill_at="0/copy: receipt stored", hold_at="0/before created") as process:
        assert killed_itself(process)
        assert bank.outcomes(6) == ["completed"]  # S3: a whole copy is left, and created is still not committed
    with bank.running("data"):
        bank.port.create(0, create)  # partition 1 would complete the backup by the copy that was left
        wait_for(lambda: len(_copies_of_first(bank)) == 2, "the copy of the new leader")
        bank.port.create(1, create)
        assert ended(bank.place, 6).state == "completed"
        first, second = _copies_of_first(bank)
        assert first.term < second.term
        assert first.state_digest == second.state_digest
        assert (first.position, first.cut_end) == (second.position, second.cut_end)
        assert bank.port.state("a0") == b"\xfe"


def _copies_of_first(bank: BankOnKafka) -> list[PartitionCopy]:
    return [copy for copy in copies(bank.place, 6) if copy.partition == 0]


def _check_store_errors(bank: BankOnKafka) -> None:
    """S8: the store refuses the log's objects, and then works again."""
    objects = bank.repository / "sources" / bank.name / "topics"
    objects.rename(objects.with_name("away"))
    objects.write_text("not a directory")
    bank.begin(7)
    assert ended(bank.place, 7).state == "failed"
    objects.unlink()
    objects.with_name("away").rename(objects)
    bank.begin(8)
    assert ended(bank.place, 8).state == "completed"


def test_what_a_dead_leader_did_not_commit_is_neither_read_nor_archived(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    first = _OpenedLog(kafka, "aborted")
    appended = [first.append([command("add", "k", b"1").at(-1, 1_000)])]
    dead = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "aborted-0"})
    dead.init_transactions()
    dead.begin_transaction()
    dead.produce("aborted.log", b"lost", partition=0)
    dead.flush()
    with pytest.raises(PartitionFenced):
        first.append([command("add", "k", b"2").at(-1, 1_000)])
    log = _OpenedLog(kafka, "aborted")
    assert log.end > 3  # the record, its marker, what was lost and its marker
    appended.append(log.append([command("add", "k", b"3").at(-1, 1_000)]))
    assert [(one.position, one.value) for one in log.read(0, 1 << 20)] == [(appended[0], b"1"), (appended[1], b"3")]
    (tmp_path / f"{0:020}.log").write_bytes(b"".join(log.batches(0, log.end)))
    in_files = FileLog(tmp_path)
    assert (in_files.end, in_files.read(0, 1 << 20)) == (log.end, log.read(0, 1 << 20))
    for one in (first, log, in_files):
        one.close()


def test_topics_with_another_number_of_partitions_are_refused(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    config = {"bootstrap.servers": kafka.bootstrap}
    found = ensure_topics(config, ApplicationTopics("counted"), 2)
    assert ensure_topics(config, ApplicationTopics("counted"), 2) == found
    with pytest.raises(TargetUnsafe, match="2 partitions, not 3") as refused:
        ensure_topics(config, ApplicationTopics("counted"), 3)
    assert refused.value.exit_code == 31
    open_directory(tmp_path, "counted", 2, utc_now(), found.application)
    with pytest.raises(TargetUnsafe, match="the cluster has"):
        open_directory(tmp_path, "counted", 2, utc_now(), "ab" * 16)
    member_id(tmp_path)
    with pytest.raises(TargetUnsafe, match="on Kafka"):
        open_directory(tmp_path, "counted", 2, utc_now())
