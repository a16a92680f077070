"""Money of an application on Kafka in three processes, of which some are killed: many backups, each restored.

`make soak` takes 30 backups, or LOGKEEP_COUNT. The counts at the end say that it was not vacuous.
"""

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
from logkeep.checkpoint.records import Kind, document_of
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import LogkeepError
from logkeep.model.time import utc_now
from logkeep.repository.access import open_repository
from logkeep.store.local import LocalStore
from tests.soak_counts import soak_count
from tests.support.cli.processes import logkeep
from tests.support.kafka.application_processes import ApplicationProcesses
from tests.support.processes import wait_for
from tests.support.running_application import copies, new_repository
from tests.support.shop import difference, large_shop

pytestmark = [pytest.mark.xdist_group("kafka-restore"), pytest.mark.soak, pytest.mark.timeout(7200)]
NAME, PARTITIONS, CLIENTS = "shop-of-three", 8, 3
PROCESSES = ("one", "two", "three")


class _Clients:
    """Order all the time, and repeat what got no reply; `accepted` got one."""

    def __init__(self, bootstrap: str) -> None:
        self._config, self._stop = {"bootstrap.servers": bootstrap}, threading.Event()
        self.accepted: list[str] = []
        self.begun: list[str] = []

    @contextmanager
    def working(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._order, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(60)

    def more(self, orders: int) -> None:
        enough = len(self.accepted) + orders
        wait_for(lambda: len(self.accepted) > enough, "orders")

    def _order(self, client: int) -> None:
        port = KafkaClient(self._config, NAME)
        for number in range(1_000_000):
            key, value = f"o-{client}-{number}", {"total": number % 7 + 1, "customer": f"c{number % 23}"}
            self.begun.append(key)
            while not self._stop.is_set():
                try:
                    port.send(SendRequest("order", key, value, key, 5))
                except LogkeepError:
                    continue  # a leader was killed: the same request again
                self.accepted.append(key)
                break
            if self._stop.is_set():
                break
        port.close()


class _Money:
    def __init__(self, kafka: EmbeddedKafka, home: Path) -> None:
        self.home, self.bootstrap = home, kafka.bootstrap
        self.run = ApplicationProcesses(home, kafka.bootstrap, "tests.support.shop:large_shop", NAME)
        new_repository(self.run.repository)
        ensure_topics({"bootstrap.servers": kafka.bootstrap}, ApplicationTopics(NAME), PARTITIONS)
        self.place = open_repository(LocalStore(self.run.repository)).place(NAME)
        self.counts: Counter[str] = Counter()

    def command(self, *words: str, codes: tuple[int, ...] = (0,)) -> dict[str, Any]:
        done = logkeep(*words, "--repo", str(self.run.repository), "--json", home=self.home)
        assert done.returncode in codes, done.stderr
        found: dict[str, Any] = json.loads(done.stdout) if done.stdout else {"state": "failed", "why": done.stderr}
        return found

    def check(self, backup_id: int, before: set[str], after: set[str]) -> None:
        target = self.home / f"restored-{backup_id}"
        self.command(
            "app", "restore", str(backup_id), "--source", NAME, "--data", str(target), "--yes", "--engine", "inline"
        )
        self.command("verify", str(backup_id), "--source", NAME, "--level", "cut", "--engine", "inline")
        self.counts["messages under way"] += any(copy.pending > 0 for copy in copies(self.place, backup_id))
        state, forced = _drained(target, backup_id)
        self.counts["forced"] += forced
        orders = {key for key in state if key.startswith("o-")}
        assert difference(state) == 0
        assert before <= orders <= after


def _drained(directory: Path, backup_id: int) -> tuple[dict[str, Any], int]:
    """The state once all messages have arrived, and how many partitions were forced to take the checkpoint."""
    lock = DirectoryLock(directory)
    runtime = Runtime(large_shop(NAME), open_directory(directory, NAME, PARTITIONS, utc_now()), RuntimeOptions())
    state: dict[str, Any] = {}
    forced = 0
    try:
        for worker in runtime.workers:
            creates = [r for r in worker.log.read(worker.log.start, 1 << 30) if r.kind == Kind.CREATE]
            first = next(document_of(r) for r in creates if document_of(r).id == backup_id)
            forced += not first.nonce
        runtime.start()
        wait_for(lambda: not any(any(w.processor.state.machine.outbox.values()) for w in runtime.workers), "messages")
        for worker in runtime.workers:
            state |= {key: msgspec.msgpack.decode(value) for key, value in worker.backend.items()}
    finally:
        runtime.stop()
        lock.release()
    return state, forced


def test_money_is_conserved_by_every_completed_backup(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    money, clients, choose = _Money(kafka, tmp_path), _Clients(kafka.bootstrap), random.Random(20)
    wanted = soak_count(30)
    cuts: list[tuple[int, set[str], set[str]]] = []
    with ExitStack() as running:
        processes = {name: running.enter_context(money.run.running(name)) for name in PROCESSES}
        running.enter_context(clients.working())
        backup_id = 0
        while len(cuts) < wanted:
            backup_id += 1
            clients.more(20)
            if choose.random() < 0.4:
                killed = choose.choice(PROCESSES)
                threading.Timer(choose.random() * 3, processes[killed].kill).start()
                money.counts["killed"] += 1
            before = set(clients.accepted)
            words = ("app", "backup", NAME, "--bootstrap-servers", money.bootstrap, "--id", str(backup_id))
            state = money.command(*words, "--timeout", "60s", codes=(0, 20))["state"]
            money.counts[state] += 1
            if state == "completed":
                cuts.append((backup_id, before, set(clients.begun)))
            for name, process in processes.items():
                if process.poll() is not None:
                    processes[name] = running.enter_context(money.run.running(name))
        clients.more(20)
    for cut in cuts:
        money.check(*cut)
    print(f"{len(cuts)} backups of {len(clients.accepted)} orders, money right in all: {dict(money.counts)}")
    if wanted >= 30:
        assert money.counts["messages under way"] >= 20
        assert money.counts["forced"] >= 10
        assert money.counts["killed"] >= 5
