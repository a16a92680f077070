"""The log of an application on a real broker keeps every promise of a log, and what crashes leave in it is not read."""

from pathlib import Path

import pytest

from logkeep.application.control import SendRequest
from logkeep.application.kafka_log.client import KafkaClient
from logkeep.application.kafka_log.inbox import KafkaInbox, Outgoing
from logkeep.application.kafka_log.kafka_log import KafkaLog
from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.checkpoint.conformance.log_checks import run_log_checks
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local import LocalStore
from tests.support.kafka.application_processes import ApplicationProcesses, killed_itself
from tests.support.processes import wait_for
from tests.support.running_application import ask, copies, ended, new_repository

pytestmark = pytest.mark.xdist_group("kafka-restore")


class _OpenedLog(KafkaLog):
    """With an inbox of its own."""

    def __init__(self, kafka: EmbeddedKafka, name: str) -> None:
        config, topics = {"bootstrap.servers": kafka.bootstrap}, ApplicationTopics(name)
        ensure_topics(config, topics, 1)
        super().__init__(config, topics, 0, KafkaInbox(config, topics, 0, Outgoing(config, topics), lambda _: None))


def test_a_log_on_kafka_keeps_every_promise(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    outcomes = run_log_checks(lambda directory: _OpenedLog(kafka, f"promises-{directory.name}"), tmp_path)
    assert len(outcomes) == 7
    assert [(one.title, one.problem) for one in outcomes if one.problem] == []


class _Bank(ApplicationProcesses):
    """Two partitions, and the steps of a coordinator."""

    def __init__(self, kafka: EmbeddedKafka, home: Path) -> None:
        super().__init__(home, kafka.bootstrap, "tests.support.running_application:bank", "bank-of-leaders")
        new_repository(self.repository)
        self.config = {"bootstrap.servers": kafka.bootstrap}
        ensure_topics(self.config, ApplicationTopics(self.name), 2)
        self.port = KafkaClient(self.config, self.name)

    @property
    def place(self) -> SourceRef:
        return open_repository(LocalStore(self.repository)).place(self.name)

    def work(self, count: int) -> None:
        for number in range(count):
            self.port.send(SendRequest("move", f"a{number}", {"amount": 1, "to": f"b{number}"}))

    def begin(self, backup_id: int, partitions: tuple[int, ...] = (1, 0)) -> CheckpointDocument:
        create = ask(self.place, self.port, backup_id)
        for partition in partitions:
            self.port.create(partition, create)
        return create

    def created(self, backup_id: int) -> None:
        wait_for(lambda: 0 in self.port.answers(backup_id), "the answer of partition 0")

    def outcomes(self, backup_id: int) -> list[str]:
        return [copy.outcome for copy in copies(self.place, backup_id) if copy.partition == 0]

    def forget_state(self) -> None:
        """The next leader replays its log from the beginning."""
        for path in (self.home / "data").glob("p*/state.sqlite*"):
            path.unlink()


def test_s1_s4_s6_s8_leaders_on_kafka_are_killed_and_follow_each_other(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    bank = _Bank(kafka, tmp_path)
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


def _check_store_errors(bank: _Bank) -> None:
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
