"""Participants in processes that come, go and are killed during the cut, beside another application on their topics.

Each backup is restored to another cluster and drained there; librdkafka counts what is in the topics then.
"""

import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kafka.restore.scene import Scene, group_positions, log_end, positions, troubles
from tests.integration.kafka.restore.test_participants import groups_removed, make_topics
from tests.soak_counts import soak_count
from tests.support.cli.filled_repository import document_of
from tests.support.kafka.backup_steps import beside
from tests.support.kafka.client_view_of_configs import admin, topic_names
from tests.support.kafka.participant_processes import (
    INPUTS,
    OUTPUTS,
    PARTITIONS,
    Clients,
    Stranger,
    Workers,
    everything,
    members,
    participant,
    values,
)
from tests.support.kafka.python_participant import PythonParticipant
from tests.support.processes import wait_for

__all__ = ["groups_removed"]
pytestmark = [pytest.mark.xdist_group("kafka-restore"), pytest.mark.usefixtures("groups_removed")]


Run = Callable[[Callable[[], bool]], None]
Stages = Callable[[str, str, str], Run]
"""Makes the process of a stage, from the cluster, the application and the stage."""


class _Cut:
    """A backup, and what clients had got confirmed before and after it."""

    def __init__(self, scene: Scene, clients: Clients, stranger: Stranger | None) -> None:
        self._scene, self._clients, self._stranger, self.name = scene, clients, stranger, clients.name

    def take(self) -> dict[str, Any]:
        self.before, self.gifts = set(self._clients.confirmed), set(self._stranger.confirmed if self._stranger else ())
        where = ("--bootstrap-servers", self._scene.kafka.bootstrap, "--source", self.name)
        done = self._scene.commands.json("kafka", "backup", "--application", self.name, *where)
        self.last, self.id = max(self._clients.confirmed), str(done["id"])
        return done

    def restore(self) -> dict[str, Any]:
        where = ("--bootstrap-servers", self._scene.target.bootstrap, "--source", self.name, "--engine", "inline")
        said = self._scene.commands.say("kafka", "restore", self.id, *where, "--yes", "--json")
        done = document_of(said.out)
        assert done["verdict"] == "proven"
        found = [(one["code"], one["where"]) for one in done["findings"]]
        if said.code == 2 and self._stranger:  # it had read what the cut leaves out, and continues at its end
            assert found == [("group-not-exact", f"group {self._stranger.group}")]
        else:
            assert (said.code, found) == (0, []), said.err
        return done

    def certificate(self) -> dict[str, Any]:
        words = ("verify", self.id, "--level", "cut", "--source", self.name, "--engine", "inline")
        found: dict[str, Any] = self._scene.commands.json(*words)["certificate"]
        return found

    def drained(self, stages: Stages) -> Counter[str]:
        """How often each receipt is there once all of what was restored is processed. Checks what was restored."""
        target = self._scene.target.bootstrap
        kept = {int(v) for v in values(target, self.name, "orders")}
        gifts = {v for v in values(target, self.name, "payments") if v.startswith("gift")}
        assert self.before <= kept <= set(range(self.last + 2))
        assert self.gifts <= gifts
        wanted = {f"{kind} {number}" for kind in ("payment", "fee") for number in kept}
        wanted |= {f"payment {gift}" for gift in gifts}
        with _threads(stages, target, self.name):
            wait_for(lambda: set(values(target, self.name, "receipts")) >= wanted, "the rest")
        booked = Counter(values(target, self.name, "receipts"))
        assert set(booked) == wanted
        return booked


@contextmanager
def _threads(stages: Stages, bootstrap: str, name: str) -> Iterator[None]:
    """Both stages in this process."""
    stop, errors = threading.Event(), list[BaseException]()

    def run(stage: str) -> None:
        try:
            stages(bootstrap, name, stage)(stop.is_set)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    threads = [threading.Thread(target=run, args=(stage,)) for stage in ("charging", "booking")]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert not errors, errors


def transactional(bootstrap: str, name: str, stage: str) -> Run:
    return participant(bootstrap, name, stage, "transactions").run


def without_transactions(bootstrap: str, name: str, stage: str) -> Run:
    return participant(bootstrap, name, stage, "without").run


def written_with_kafka_python(bootstrap: str, name: str, stage: str) -> Run:
    def made_of(topic: str, value: bytes) -> list[tuple[str, bytes]]:
        if stage == "charging":
            return [(f"{name}-payments", value), (f"{name}-fees", value)]
        kind = b"payment " if topic.endswith("payments") else b"fee "
        return [(f"{name}-receipts", kind + value)]

    inputs, outputs = ([f"{name}-{each}" for each in some[stage]] for some in (INPUTS, OUTPUTS))
    return PythonParticipant(bootstrap, name, f"{name}-{stage}", inputs, outputs, made_of).run


def _marker_sent(scene: Scene, name: str, before: int) -> None:
    wait_for(lambda: log_end(scene.kafka, f"{name}.control") > before, "the marker")


def test_workers_that_come_and_go_during_the_cut_and_a_stranger_on_the_topics(scene: Scene, tmp_path: Path) -> None:
    name, source = "shop-of-processes", scene.kafka.bootstrap
    make_topics(scene, name)
    # The one that is stopped stays a member, for however long the backup takes to begin.
    workers, clients = Workers(source, name, "transactions", tmp_path, session_ms=120_000), Clients(source, name)
    with workers(), clients(), Stranger(source, name)() as stranger:
        stays, goes, booking = (workers.join(stage) for stage in ("charging", "charging", "booking"))
        wait_for(lambda: members(source, f"{name}-charging") == 2, "two members")
        wait_for(lambda: log_end(scene.kafka, f"{name}-receipts") > 100 and len(stranger.confirmed) > 10, "receipts")
        workers.leave(booking)
        goes.send_signal(signal.SIGSTOP)  # its tasks do not answer
        cut, control = _Cut(scene, clients, stranger), log_end(scene.kafka, f"{name}.control")
        with beside(cut.take) as taking:
            _marker_sent(scene, name, control)
            workers.join("charging")  # a rebalance begins, and waits for the one that is stopped
            workers.leave(goes)
            wait_for(lambda: members(source, f"{name}-charging") == 2, "the new member")
            assert not taking.done()
            workers.join("booking")
            done = taking.result()
        clients.more(100)
        assert stays.poll() is None
    assert not troubles(done)
    restored = cut.restore()
    before, after = everything(source, name), everything(scene.target.bootstrap, name)
    appended = {(one["topic"], one["partition"]): one["first"] for one in restored["appended"]}
    for (topic, p), records in after.items():
        end = appended.get((f"{name}-{topic}", p), 1 << 62)
        kept = {offset: record for offset, record in records.items() if offset < end}
        assert kept.items() <= before[(topic, p)].items(), topic
    at = group_positions(scene.target, stranger.group)
    assert {log for log in at if log[0].endswith("orders")} == {(f"{name}-orders", p) for p in range(PARTITIONS)}
    print(cut.certificate())
    print(at, appended, {k: (min(v, default=None), max(v, default=None)) for k, v in after.items()})
    assert set(cut.drained(transactional).values()) == {1}


def test_a_transaction_that_is_open_when_a_backup_begins_is_restored_whole(scene: Scene, tmp_path: Path) -> None:
    """Its records lie before the end of the cut, and its marker behind it."""
    name, source = "shop-of-open", scene.kafka.bootstrap
    make_topics(scene, name)
    workers, gifts = Workers(source, name, "transactions", tmp_path), [f"gift {number}" for number in range(5)]
    with workers():
        for stage in ("charging", "booking"):
            workers.join(stage)
            wait_for(lambda: members(source, f"{name}-{stage}") == 1, "the group")  # noqa: B023  called at once
        producer = scene.topics.producer(transactional_id=f"{name}-stranger", transaction_timeout_ms=60_000)
        producer.init_transactions(30)
        producer.begin_transaction()
        for gift in gifts:
            producer.produce(f"{name}-fees", gift, partition=0)
        assert producer.flush(30) == 0
        control, where = log_end(scene.kafka, f"{name}.control"), ("--bootstrap-servers", source, "--source", name)
        with beside(lambda: scene.commands.json("kafka", "backup", "--application", name, *where)) as taking:
            _marker_sent(scene, name, control)
            producer.commit_transaction(30)
            assert not troubles(taking.result())
    target = ("--bootstrap-servers", scene.target.bootstrap, "--source", name, "--engine", "inline", "--yes")
    assert scene.commands.json("kafka", "restore", "latest", *target)["verdict"] == "proven"
    assert values(scene.target.bootstrap, name, "fees") == gifts


@pytest.mark.soak
def test_an_application_written_with_kafka_python_and_the_public_functions_alone(scene: Scene) -> None:
    """Not in `make test`: about one time in four kafka-python 3.0.12 waits in `send_offsets_to_transaction` for ever,
    with threads of its own only on the stack."""
    name, source = "shop-in-python", scene.kafka.bootstrap
    make_topics(scene, name)
    clients = Clients(source, name, every_s=0.005)
    with _threads(written_with_kafka_python, source, name), clients():
        wait_for(lambda: log_end(scene.kafka, f"{name}-receipts") > 100, "receipts")
        cut = _Cut(scene, clients, None)
        assert not troubles(cut.take())
        clients.more(20)
    cut.restore()
    print(cut.certificate())
    assert set(cut.drained(written_with_kafka_python).values()) == {1}


def test_without_transactions_duplicates_are_counted_and_the_cut_is_not_exact(scene: Scene, tmp_path: Path) -> None:
    name, source = "shop-of-duplicates", scene.kafka.bootstrap
    make_topics(scene, name)
    workers, clients = Workers(source, name, "without", tmp_path), Clients(source, name, every_s=0.01)
    with workers(), clients():
        forgetful = workers.join("charging", "never")
        workers.join("booking")
        wait_for(lambda: log_end(scene.kafka, f"{name}-receipts") > 100, "receipts")
        workers.die(forgetful)
        cut, control = _Cut(scene, clients, None), log_end(scene.kafka, f"{name}.control")
        with beside(cut.take) as taking:
            _marker_sent(scene, name, control)
            workers.join("charging")
            done = taking.result()
        clients.more(20)
    assert [finding["code"] for finding in done["findings"] if finding["code"].startswith("cut")] == ["cut-not-exact"]
    certificate = cut.certificate()
    cut.restore()
    twice = sum(number - 1 for number in cut.drained(without_transactions).values())
    print(f"without transactions: {certificate['duplicates']} possible duplicates, {twice} came")
    assert certificate["exact"] is False
    assert certificate["duplicates"] == twice > 0


class _Churn:
    """Workers join, leave and are killed all the time; each stage keeps one."""

    def __init__(self, workers: Workers, choose: random.Random) -> None:
        self._workers, self._choose, self._stop = workers, choose, threading.Event()
        self._thread = threading.Thread(target=self._go_on)
        self._stages = {stage: [workers.join(stage)] for stage in ("charging", "booking")}
        self.counts, self.errors = Counter[str](), list[BaseException]()

    @contextmanager
    def __call__(self) -> Iterator["_Churn"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join(120)
        assert not self.errors, self.errors

    def _go_on(self) -> None:
        try:
            while not self._stop.wait(self._choose.random() * 2):
                stage = self._choose.choice(("charging", "booking"))
                self._stages[stage].append(self._workers.join(stage))
                self.counts["joined"] += 1
                self._stop.wait(1 + self._choose.random() * 2)
                one = self._stages[stage].pop(0)
                how = "killed" if self._choose.random() < 0.3 else "left"
                (self._workers.die if how == "killed" else self._workers.leave)(one)
                self.counts[how] += 1
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.errors.append(error)


def _empty(scene: Scene, name: str) -> None:
    """The target has no topic and no group of the application."""
    client = admin(scene.target)
    names = [topic for topic in topic_names(scene.target) if topic.startswith(name)]
    for done in client.delete_topics(names).values() if names else ():
        done.result(30)
    wait_for(lambda: not any(topic.startswith(name) for topic in topic_names(scene.target)), "no topics")
    groups = [group for group in positions(scene.target) if group.startswith(name)]
    for done in client.delete_consumer_groups(groups).values() if groups else ():
        done.result(30)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["transactions", "without"])
def test_many_cuts_while_workers_come_go_and_are_killed(scene: Scene, tmp_path: Path, how: str) -> None:
    name, source, cuts = f"shop-churned-{how}", scene.kafka.bootstrap, list[_Cut]()
    make_topics(scene, name)
    workers, clients, counts = Workers(source, name, how, tmp_path), Clients(source, name, 0.01), Counter[str]()
    stages = transactional if how == "transactions" else without_transactions
    with workers(), clients(), Stranger(source, name)() as stranger:
        with _Churn(workers, random.Random(20))() as churn:
            wait_for(lambda: log_end(scene.kafka, f"{name}-receipts") > 100, "receipts")
            while len(cuts) < soak_count(10):
                clients.more(50)
                cuts.append(_Cut(scene, clients, stranger))
                assert not troubles(cuts[-1].take())
        clients.more(50)
    for cut in cuts:
        found = cut.certificate()
        counts["in transit"] += found["in_transit"] > 0
        counts["possible duplicates"] += found.get("duplicates", 0)
        assert not [rule for rule in found["rules"] if rule["outcome"] == "broken"]
        assert found.get("exact", True) == (how == "transactions")
        cut.restore()
        booked = cut.drained(stages)
        counts["twice"] += sum(number - 1 for number in booked.values())
        counts["booked"] += sum(booked.values())
        _empty(scene, name)
    print(f"{how}: {len(cuts)} cuts, each restored and drained: {dict(counts)}, workers {dict(churn.counts)}")
    if how == "transactions":
        assert counts["twice"] == 0
