"""The shop of eight partitions in three processes on three brokers, its clients, and what may go wrong there.

Every fault that was brought about is counted by its name; what did not happen is not counted.
"""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import NewTopic

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError
from logkeep.application.control import SendRequest
from logkeep.application.kafka_log.client import KafkaClient
from logkeep.errors import LogkeepError
from tests.support.cli.forker import ForkedProcess
from tests.support.cli.processes import clean_environment
from tests.support.kafka.controlled_coordinator import Wanted
from tests.support.kafka.controlled_process import SCENARIOS, Control, Order
from tests.support.processes import wait_for
from tests.support.servers.kafka_cluster import KafkaCluster

PARTITIONS, CLIENTS, SECONDS = 8, 3, 60
PROCESSES = ("one", "two", "three")
KINDS = (
    "S1", "coordinator", "S2", "slow", "S3", "equal", "S4", "coordinator", "S5", "busy", "S6", "different", "S7",
    "lost", "denied", "coordinator", "full", "unreachable", "retake", "supersede",
)  # fmt: skip
"""What goes wrong during one backup after the other, again and again."""


class Clients:
    """Order all the time, and repeat what got no reply; `accepted` got one."""

    def __init__(self, bootstrap: str, name: str, every_s: float = 0.0) -> None:
        self._config, self._name, self._every_s = {"bootstrap.servers": bootstrap}, name, every_s
        self._stop = threading.Event()
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
        with closing(KafkaClient(self._config, self._name)) as port:
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
                if self._stop.wait(self._every_s):
                    return


@dataclass
class Fleet:
    """The processes. One that has ended is started again at once, with its directory."""

    home: Path
    bootstrap: str
    name: str
    control: Control
    processes: Sequence[str] = PROCESSES
    running: dict[str, ForkedProcess] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def __call__(self) -> Iterator["Fleet"]:
        keeper = threading.Thread(target=self._keep)
        keeper.start()
        try:
            yield self
        finally:
            self._stop.set()
            keeper.join(60)
            for process in self.running.values():
                process.kill()
                process.wait()

    def _keep(self) -> None:
        while not self._stop.wait(0.1):
            for each in self.processes:
                if each not in self.running or self.running[each].poll() is not None:
                    self.running[each] = self._start(each)
                    self.started[each] += 1

    def _start(self, each: str) -> ForkedProcess:
        module = "tests.support.kafka.controlled_process"
        words = [sys.executable, "-m", module, str(self.control.directory), each, self.name, "run"]
        words += ["--data", str(self.home / each), "--bootstrap-servers", self.bootstrap]
        words += ["--repository", f"file://{self.home / 'repository'}", "--snapshot-every", "16KiB"]
        with (self.home / f"{each}.out").open("ab") as out:
            return ForkedProcess(words, cwd=self.home, env=clean_environment(self.home), stdout=out, stderr=out)


@dataclass
class Taken:
    """A backup that coordinators tried to take, and what clients had done before and after it was accepted."""

    id: int
    kind: str
    before: set[str]
    begun: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)


class ShopUnderFaults:
    def __init__(self, cluster: KafkaCluster, home: Path, name: str, seed: int) -> None:
        self._cluster, self._home, self._name = cluster, home, name
        self._choose, self._die_at = random.Random(seed), 0
        self.bootstrap = ",".join(member.bootstrap for member in cluster.members.values())
        self.control = Control(home / "control")
        self.fleet = Fleet(home, self.bootstrap, name, self.control)
        self.clients = Clients(self.bootstrap, name, 0.15)
        self.faults: Counter[str] = Counter()

    def make_topics(self) -> None:
        """Three replicas of each partition; two must confirm."""
        orders = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
        replicas = [orders[number % 3] for number in range(PARTITIONS)]
        config = {"min.insync.replicas": "2"}
        new = [
            NewTopic(f"{self._name}.{each}", PARTITIONS, replica_assignment=replicas, config=config)
            for each in ("log", "inbox", "replies")
        ]
        for made in self._cluster.admin.create_topics(new).values():
            made.result(30)

    def back_up(self, backup_id: int, kind: str) -> list[Taken]:
        """One backup with what goes wrong during it; two with two coordinators of different ids."""
        ids = [backup_id, backup_id + 1] if kind in ("different", "supersede") else [backup_id]
        taken = [Taken(each, kind, set(self.clients.accepted)) for each in ids]
        begun, order = time.time(), self._order(kind)
        number = self.control.order(order)
        extra = self._extra(kind)
        with ThreadPoolExecutor(len(extra) + 4) as pool:
            beside = [pool.submit(self._coordinate, pool, kind, taken)]
            beside += [pool.submit(self._bring_about, one) for one in extra if one != "broker"]
            if "broker" in extra:
                self._bring_about("broker")  # a broker dies with the thread that started it
            for done in beside:
                done.result()
        self.faults[f"killed in {kind}"] += self.control.happened(number)
        self.control.order(Order())
        if order.store:
            lines = (line for line in self.control.lines() if float(line[0]) >= begun)
            self.faults[f"store {order.store}"] += any(line[3] == "store" for line in lines)
        return taken

    def _order(self, kind: str) -> Order:
        scenario = self._choose.choice(("S4", "S5", "S6", "S7")) if kind == "retake" else kind
        if scenario in SCENARIOS:
            partition = self._choose.randrange(PARTITIONS)
            return msgspec.structs.replace(SCENARIOS[scenario], scenario=scenario, partition=partition)
        if kind in ("slow", "busy", "lost", "denied", "full", "unreachable"):
            return Order(store=kind, part="/topics/" if kind in ("denied", "full") else "")
        return Order()

    def _extra(self, kind: str) -> list[str]:
        found = ["leader"] * self._choose.randint(2, 3)
        found += ["broker"] if self._choose.random() < 0.2 else []
        if kind not in SCENARIOS and kind != "retake":
            found += ["worker"] if self._choose.random() < 0.4 else []
            found += ["suspended"] if self._choose.random() < 0.1 else []
        if kind in ("slow", "busy", "lost", "unreachable"):
            found += ["store again"]
        return found

    def _coordinate(self, pool: ThreadPoolExecutor, kind: str, taken: Sequence[Taken]) -> None:
        """The last one that is started is disturbed by nothing."""
        first, last = taken[0], taken[-1]
        how = "retake" if kind == "retake" else "fail"
        plain = Wanted(
            bootstrap=self.bootstrap, name=self._name, repository=f"file://{self._home / 'repository'}", id=first.id,
            seconds=SECONDS, on_failover="retake" if how == "retake" else "fail",
            pause_s=self._choose.choice((0.0, 0.3)),
        )  # fmt: skip
        change = msgspec.structs.replace
        if kind == "coordinator":
            self._die_at = self._die_at % 34 + 1
            said = self._coordinator(change(plain, die_at=self._die_at), first)
            self.faults["coordinator killed"] += any(line.startswith("killed at") for line in said)
        elif kind in ("equal", "different", "supersede"):
            other = change(plain, id=last.id, supersede=kind == "supersede")
            done = [pool.submit(self._coordinator, *both) for both in ((plain, first), (other, last))]
            for one in done:
                one.result()
            self.faults[f"two coordinators, {kind}"] += 1
        lost = self._choose.choice(({}, {"lost_answers": self._choose.randint(1, 9)}, {"lost_store_answer": 0}))
        if "lost_store_answer" in lost:
            lost["lost_store_answer"] = self._choose.randint(1, 30)
        for each in taken if kind not in ("different", "supersede") else ():
            self._coordinator(change(plain, id=each.id, **lost), each)
            self.faults["answers to a coordinator lost"] += bool(lost)

    def _coordinator(self, wanted: Wanted, taken: Taken) -> list[str]:
        """Until it ends; one that could not reach the cluster is started again, as people do."""
        found: list[str] = []
        for _ in range(4):
            found = self._coordinator_once(wanted, taken)
            if not any(line.startswith(("Cluster", "Topic")) for line in found):
                break
        return found

    def _coordinator_once(self, wanted: Wanted, taken: Taken) -> list[str]:
        words = [
            sys.executable,
            "-m",
            "tests.support.kafka.controlled_coordinator",
            msgspec.json.encode(wanted).decode(),
        ]
        found: list[str] = []
        with (self._home / "coordinators.out").open("ab") as errors:
            process = ForkedProcess(
                words, cwd=self._home, env=clean_environment(self._home), stdout=subprocess.PIPE, stderr=errors,
                text=True,
            )  # fmt: skip
            for line in process.stdout or ():
                found.append(line.strip())
                if found[-1] == "accepted" and not taken.begun:
                    taken.begun = set(self.clients.begun)
            found += [f"ended with {code}"] if (code := process.wait()) not in (0, -signal.SIGKILL) else []
        taken.said += [f"coordinator of {wanted.id}: {line}" for line in found]
        return found

    def _bring_about(self, fault: str) -> None:
        time.sleep(self._choose.random() * 2)
        if fault == "leader":
            self.faults["leader of a log moved"] += self._move_a_leader()
        elif fault == "broker":
            member = self._cluster.members[self._choose.choice((2, 3))]
            member.kill()
            member.start()
            self.faults["broker restarted"] += 1
        elif fault == "worker":
            self.fleet.running[self._choose.choice(PROCESSES)].kill()
            self.faults["worker killed"] += 1
        elif fault == "suspended":
            process = self.fleet.running[self._choose.choice(PROCESSES)]
            process.send_signal(signal.SIGSTOP)
            time.sleep(12)
            process.send_signal(signal.SIGCONT)
            self.faults["worker suspended beyond its session"] += 1
        elif fault == "store again":
            time.sleep(4)
            self.control.order(Order())

    def _move_a_leader(self) -> bool:
        topic, partition = f"{self._name}.{self._choose.choice(('log', 'log', 'inbox'))}", self._choose.randrange(8)
        with suppress(KafkaException, KafkaError, OSError):
            before = self._leader(topic, partition)
            first = self._choose.choice([node for node in (1, 2, 3) if node != before])
            replicas = [first, *(node for node in (1, 2, 3) if node != first)]
            client = KafkaAdminClient(bootstrap_servers=self._cluster.members[1].bootstrap)
            client.alter_partition_reassignments({TopicPartition(topic, partition): replicas})
            client.close()
            self._cluster.admin.elect_leaders(ElectionType.PREFERRED, [Position(topic, partition)]).result(30)
            return self._leader(topic, partition) != before
        return False

    def _leader(self, topic: str, partition: int) -> int:
        return int(self._cluster.admin.list_topics(topic, 30).topics[topic].partitions[partition].leader)
