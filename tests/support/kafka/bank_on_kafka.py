"""The bank of two partitions with its log on brokers, and the steps of a coordinator."""

from pathlib import Path

from logkeep.application.control import SendRequest
from logkeep.application.kafka_log.client import KafkaClient
from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.checkpoint.records import CheckpointDocument
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.support.kafka.application_processes import ApplicationProcesses
from tests.support.processes import wait_for
from tests.support.running_application import ask, copies, new_repository


class BankOnKafka(ApplicationProcesses):
    """Its topics are made here, unless the test has made them."""

    def __init__(self, bootstrap: str, home: Path, name: str) -> None:
        super().__init__(home, bootstrap, "tests.support.running_application:bank", name)
        new_repository(self.repository)
        self.config = {"bootstrap.servers": bootstrap}
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
        """Partition 0 has its checkpoint, and no copy; partition 1 has both."""
        wait_for(lambda: 0 in self.port.answers(backup_id), "the answer of partition 0")
        wait_for(lambda: [one.partition for one in copies(self.place, backup_id)] == [1], "the copy of partition 1")

    def outcomes(self, backup_id: int) -> list[str]:
        return [copy.outcome for copy in copies(self.place, backup_id) if copy.partition == 0]

    def forget_state(self) -> None:
        """The next leader replays its log from the beginning."""
        for path in (self.home / "data").glob("p*/state.sqlite*"):
            path.unlink()
