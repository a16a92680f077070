"""Twenty random rounds of rollback, clone and restart: every backup restores exactly the past that it was taken of."""

import os
import random
from pathlib import Path

import pytest

from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.model.cache import cache_dir
from tests.support.cli.filled_repository import Filled
from tests.support.kafka.command_in_process import Commands
from tests.support.kafka.consumer_view import seen
from tests.support.kafka.kernel_cache import share_kernels
from tests.support.kafka.topic_matrix import BROKER
from tests.support.kafka.whole_backups import Archive, new_place
from tests.support.servers.rolled_back_kafka import Recorded, RolledBackKafka, rolled_back_kafka, values

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600), pytest.mark.xdist_group("kafka-pasts")]
TOPICS = ("first", "second", "third")
ROUNDS = 20


def _happens(broker: RolledBackKafka, disks: list[str], number: int, chance: random.Random) -> str:
    """What becomes of the cluster before a round."""
    event = chance.choice(["nothing", "restart", "copy", "copy of a running broker", "rollback", "rollback", "clone"])
    name = f"disk{number}"
    if event == "restart":
        broker.kafka.stop()
        broker.kafka.start()
    elif event.startswith("copy"):
        broker.copy_disk(name, running=event != "copy")
        disks.append(name)
    elif event == "rollback":
        broker.put_back(chance.choice(disks), restarts=chance.choice((1, 1, 2)))
    elif event == "clone":  # the disk of today stays alive, and comes back in a later round
        broker.put_back(chance.choice(disks), keep=name)
        disks.append(name)
    return event


def _restored(commands: Commands, target: EmbeddedKafka, backup: int, prefix: str) -> dict[str, Recorded]:
    where = ("--bootstrap-servers", target.bootstrap, "--rename", f"s/^/{prefix}/", "--engine", "inline", "--yes")
    assert commands.json("kafka", "restore", str(backup), *where)["verdict"] == "proven"
    return {topic: values(seen(target.bootstrap, prefix + topic, 0)) for topic in TOPICS}


def test_every_backup_restores_the_past_it_was_taken_of(tmp_path: Path) -> None:
    seed = int(os.environ.get("LOGKEEP_SEED", "16"))
    chance, repo, counted = random.Random(seed), Filled(tmp_path / "home"), dict[str, int]()
    repo.home.mkdir()
    share_kernels(repo.home)
    target = EmbeddedKafka(tmp_path / "target", cache_dir(os.environ, Path.home()), properties=BROKER)
    with rolled_back_kafka(tmp_path, TOPICS) as broker, target:
        archive, commands = Archive(broker.bootstrap, new_place(repo.root)), Commands(repo.url, repo.home)
        broker.copy_disk("disk0")
        disks, taken = ["disk0"], list[tuple[int, dict[str, Recorded]]]()
        for number in range(1, ROUNDS + 1):
            event = _happens(broker, disks, number, chance)
            for topic in TOPICS:
                broker.write(topic, f"round{number}", chance.choice((0, 20, 50, 75)), chance.choice((5, 7, 10, 25)))
            done = archive.back_up(*TOPICS)
            taken.append((done.entry.id, broker.recorded(*TOPICS)))
            new = sum(f.code == "new-history" for f in done.findings)
            counted[event] = counted.get(event, 0) + 1
            print(f"round {number}: {event}, {new} new histories, {done.offsets} offsets, gaps {len(done.gaps)}")
            assert done.gaps == ()
            assert {f.code for f in done.findings} <= {"new-history"}
        for number, (backup, past) in enumerate(taken, 1):
            assert _restored(commands, target, backup, f"r{number}-") == past, f"round {number} of seed {seed}"
            print(f"backup {number}: {sum(map(len, past.values()))} records restored, all of its own past")
        archive.check(*(backup for backup, _ in taken))
    print(f"seed {seed}: {dict(sorted(counted.items()))}")
