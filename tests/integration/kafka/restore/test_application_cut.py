"""An application on Kafka in two processes is backed up under load, and restored to files: its money is right."""

import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logkeep.application.control import SendRequest
from logkeep.application.data_directory import DirectoryLock, open_directory
from logkeep.application.kafka_log.client import KafkaClient
from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.application.runtime import Runtime
from logkeep.application.worker_factory import RuntimeOptions
from logkeep.checkpoint.state.sqlite_state import SqliteState
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.time import utc_now
from tests.support.cli.processes import logkeep
from tests.support.kafka.application_processes import ApplicationProcesses
from tests.support.processes import wait_for
from tests.support.running_application import new_repository
from tests.support.shop import difference, shop

pytestmark = pytest.mark.xdist_group("kafka-restore")
NAME = "shop-of-two"


class _Load:
    """Clients that order all the time; `accepted` are the orders that have got their reply."""

    def __init__(self, bootstrap: str) -> None:
        self._config = {"bootstrap.servers": bootstrap}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._order, args=(number,)) for number in range(3)]
        self.accepted: list[str] = []
        self.begun: list[str] = []

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _order(self, client: int) -> None:
        port = KafkaClient(self._config, NAME)
        for number in range(100_000):
            if self._stop.is_set():
                break
            key, value = f"o-{client}-{number}", {"total": number % 7 + 1, "customer": f"c{number % 5}"}
            self.begun.append(key)
            port.send(SendRequest("order", key, value, key))
            self.accepted.append(key)
        port.close()


def _drained(directory: Path) -> dict[str, Any]:
    """The state of a restored application once all its messages have arrived."""
    lock = DirectoryLock(directory)
    made = open_directory(directory, NAME, 4, utc_now())
    runtime = Runtime(shop(NAME), made, RuntimeOptions())
    runtime.start()
    try:
        wait_for(lambda: not any(one.processor.state.machine.outbox for one in runtime.workers), "empty outboxes")
    finally:
        runtime.stop()
        lock.release()
    found = {}
    for number in range(4):
        found.update(_values(made.partition(number) / "state.sqlite"))
    return found


def _values(path: Path) -> dict[str, Any]:
    state = SqliteState(path)
    try:
        return {key: msgspec.msgpack.decode(value) for key, value in state.items()}
    finally:
        state.close()


def test_a_backup_under_load_is_restored_to_files_with_its_money(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    run = ApplicationProcesses(tmp_path, kafka.bootstrap, "tests.support.shop:shop", NAME)
    new_repository(run.repository)
    ensure_topics({"bootstrap.servers": kafka.bootstrap}, ApplicationTopics(NAME), 4)
    load, where = _Load(kafka.bootstrap), ("--repo", str(run.repository), "--json")
    with run.running("one"):
        load.begin()
        wait_for(lambda: len(load.accepted) > 10, "orders")
        with run.running("two"):
            wait_for(lambda: any((tmp_path / "two").glob("p*")), "partitions of the second process")
            before = list(load.accepted)
            wait_for(lambda: len(load.accepted) > len(before) + 10, "orders")
            before = list(load.accepted)
            taken = logkeep(
                "app", "backup", NAME, "--bootstrap-servers", kafka.bootstrap, "--id", "7", *where, home=tmp_path
            )
            assert taken.returncode == 0, taken.stderr
            after = set(load.begun)
            wait_for(lambda: len(load.accepted) > len(after) + 10, "orders behind the cut")
            load.end()
    assert json.loads(taken.stdout)["state"] == "completed"
    restored = logkeep(
        "app", "restore", "7", "--data", str(tmp_path / "files"), "--yes", "--engine", "inline", *where, home=tmp_path
    )
    assert restored.returncode == 0, restored.stderr
    verified = logkeep("verify", "7", "--level", "cut", "--engine", "inline", *where, home=tmp_path)
    assert verified.returncode == 0, verified.stdout
    state = _drained(tmp_path / "files")
    orders = {key for key in state if key.startswith("o-")}
    assert difference(state) == 0
    assert set(before) <= orders <= after
