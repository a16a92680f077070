"""Money of an application on Kafka in three processes: many backups, each restored to an empty cluster and drained.

`make soak` takes 60 backups on three brokers, or LOGKEEP_COUNT, within LOGKEEP_MINUTES, and something goes wrong during
each of them. The counts at the end say that it was not vacuous. A recorder that reads the log with kafka-python judges
states and cuts.
"""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from logkeep.application.kafka_log.log_topics import ApplicationTopics, ensure_topics
from logkeep.checkpoint.archive.settle import Settlement, settle
from logkeep.checkpoint.steps import run
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.backups.states import StateName
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.local.store import LocalStore
from tests.integration.kafka.restore.scene import Scene
from tests.soak_counts import soak_count
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.controlled_process import Control
from tests.support.kafka.log_recorder import LogRecorder
from tests.support.kafka.money_judge import MoneyJudge
from tests.support.kafka.participant_processes import members
from tests.support.kafka.shop_under_faults import (
    KINDS,
    PARTITIONS,
    PROCESSES,
    SECONDS,
    Clients,
    Fleet,
    ShopUnderFaults,
    Taken,
)
from tests.support.processes import wait_for
from tests.support.running_application import copies, new_repository
from tests.support.servers.kafka_cluster import KafkaCluster


@pytest.mark.xdist_group("kafka-restore")
def test_money_is_conserved_by_backups_under_load(scene: Scene, tmp_path: Path) -> None:
    name = "shop-of-three"
    new_repository(tmp_path / "repository")
    ensure_topics({"bootstrap.servers": scene.kafka.bootstrap}, ApplicationTopics(name), PARTITIONS)
    commands = Commands(f"file://{tmp_path / 'repository'}", scene.repo.home)
    clients = Clients(scene.kafka.bootstrap, name)
    cuts: list[tuple[int, set[str], set[str]]] = []
    with Fleet(tmp_path, scene.kafka.bootstrap, name, Control(tmp_path / "control"))() as fleet, clients.working():
        wait_for(lambda: members(scene.kafka.bootstrap, name) == len(PROCESSES), "all members")
        for backup_id in (1, 2, 3):
            clients.more(20)
            before = set(clients.accepted)
            words = ("app", "backup", name, "--bootstrap-servers", scene.kafka.bootstrap, "--id", str(backup_id))
            commands.json(*words, "--no-wait", "--on-failover", "retake")
            cuts.append((backup_id, before, set(clients.begun)))
            wait_for(partial(_is_completed, commands, name, backup_id), f"the end of backup {backup_id}")
        clients.more(20)
        assert fleet.started == dict.fromkeys(PROCESSES, 1)
    judge = MoneyJudge(commands, scene.target, tmp_path, name, LogRecorder(scene.kafka.bootstrap, f"{name}.log", 8))
    for cut in cuts:
        judge.check(*cut)
    print(f"3 backups of {len(clients.accepted)} orders: {dict(judge.counts)}")


def _is_completed(commands: Commands, name: str, backup_id: int) -> bool:
    return bool(commands.json("app", "status", str(backup_id), "--source", name)["state"] == "completed")


class _Soak:
    """Backups, one after the other, and what became of them."""

    def __init__(self, shop: ShopUnderFaults, place: SourceRef) -> None:
        self._shop, self._place = shop, place
        self.taken: list[Taken] = []
        self.states: dict[int, Settlement] = {}
        self.latest_s = 0.0
        """How long a backup took at most, with coordinators that were started again."""

    def back_up(self, number: int) -> None:
        started, backup_id = time.monotonic(), self.taken[-1].id + 1 if self.taken else 1
        taken = self._shop.back_up(backup_id, KINDS[number % len(KINDS)])
        for each in taken:
            wait_for(partial(self._is_decided, each), f"the end of backup {each.id}")
            each.begun = each.begun or set(self._shop.clients.begun)
            settled = self.states[each.id]
            print(
                f"{time.strftime('%T')} {each.kind} {each.id}: {settled.state} {settled.reason} {each.said}", flush=True
            )
        self.taken += taken
        self.latest_s = max(self.latest_s, time.monotonic() - started)

    def _is_decided(self, taken: Taken) -> bool:
        found = self.states[taken.id] = run(settle(self._place, taken.id, utc_now, random_token), lambda _: False)
        return found.state is not StateName.ONGOING

    @property
    def completed(self) -> list[Taken]:
        return [each for each in self.taken if self.states[each.id].state is StateName.COMPLETED]


def _scenarios(lines: Sequence[Sequence[str]]) -> Counter[str]:
    """S1 to S7, by what a killed process had done for the checkpoint of a partition, and by who led it next."""
    found, reached = Counter[str](), defaultdict[tuple[str, str], set[str]](set)
    for number, (_, process, partition, what, *_more) in enumerate(lines):
        seen = reached[process, partition]
        if what == "backup begun":
            seen.clear()
        seen.add(what)
        if what == "killed":
            found[_scenario(seen, process == _next_leader(lines[number:], partition))] += 1
    return found


def _next_leader(lines: Sequence[Sequence[str]], partition: str) -> str:
    return next((line[1] for line in lines if line[2:4] == [partition, "resume: open the store"]), "")


def _scenario(seen: set[str], same_process: bool) -> str:
    begun, whole = "copy: read the base" in seen, "copy: receipt stored" in seen
    if "appended created" not in seen:
        return "S3" if whole else "S2" if begun else "S1"
    if whole:
        return "none: the copy was whole, and created committed"
    kept = "state stored" in seen and same_process
    return ("S5" if kept else "S4") if begun else ("S7" if kept else "S6")


def _snapshots_during_copies(lines: Sequence[Sequence[str]]) -> int:
    copying, found = set[tuple[str, str]](), 0
    for _, process, partition, what, *_more in lines:
        if what == "copy: read the base":
            copying.add((process, partition))
        elif what in ("copy: receipt stored", "copy: record the failure", "killed"):
            copying.discard((process, partition))
        found += what == "snapshot: stored" and (process, partition) in copying
    return found


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.xdist_group("kafka-three")
def test_money_is_conserved_whatever_goes_wrong(cluster: KafkaCluster, target: EmbeddedKafka, tmp_path: Path) -> None:
    name, wanted = "shop-under-faults", soak_count(60)
    repository = tmp_path / "repository"
    new_repository(repository)
    place = open_repository(LocalStore(repository)).place(name)
    shop = ShopUnderFaults(cluster, tmp_path, name, seed=20)
    shop.make_topics()
    soak = _Soak(shop, place)
    until = time.monotonic() + 60 * float(os.environ.get("LOGKEEP_MINUTES") or 60)
    with shop.fleet(), shop.clients.working():
        shop.clients.more(20)
        for number in range(wanted):
            if time.monotonic() < until:
                soak.back_up(number)
        shop.clients.more(20)
    lines = shop.control.lines()
    scenarios = _scenarios(lines)
    scenarios["S8"] = sum(_is_of_the_store(place, each) for each in soak.taken)
    states = Counter(str(settled.state) for settled in soak.states.values())
    store = Counter(more for _, _, _, what, more, *_ in lines if what == "store")
    print(f"{len(shop.clients.accepted)} orders accepted, {len(soak.taken)} backups: {dict(states)}")
    print(f"deadline {SECONDS} s; the slowest took {soak.latest_s:.0f} s with all its coordinators")
    print(f"{shop.faults.total()} faults: {dict(+shop.faults)}, calls of the store: {dict(store)}")
    print(f"scenarios: {dict(sorted(scenarios.items()))}, snapshots during copies: {_snapshots_during_copies(lines)}")
    recorder = LogRecorder(shop.bootstrap, f"{name}.log", PARTITIONS)
    judge = MoneyJudge(Commands(f"file://{repository}", tmp_path), target, tmp_path, name, recorder)
    for each in soak.completed:
        judge.check(each.id, each.before, each.begun)
        print(f"{time.strftime('%T')} checked {each.id}", flush=True)
    print(f"completed backups: {dict(judge.counts)}, processed twice: {recorder.twice}")
    assert recorder.twice == 0
    assert set(states) <= {"completed", "failed", "doesNotExist"}
    if len(soak.taken) >= 60:
        assert len(soak.completed) >= 30
        assert shop.faults.total() >= 200
        assert judge.counts["cuts with messages under way"] >= 20
        assert judge.counts["forced checkpoints"] >= 10
        assert all(scenarios[f"S{number}"] >= 3 for number in range(1, 9)), scenarios


def _is_of_the_store(place: SourceRef, taken: Taken) -> bool:
    """S8: the store refused a copy, and the backup failed."""
    try:
        found = copies(place, taken.id)
    except AssertionError:  # no request was stored
        return False
    return any(copy.outcome == "failed" and ("403" in copy.reason or "no space" in copy.reason) for copy in found)
