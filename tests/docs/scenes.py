"""What happens between the steps of a guide without its reader: nights pass, a run dies, a disk rots, a shop sells.

`python -m tests.docs.scenes NAME` plays one scene in the repository `./backups` of the guide, with backups of the
scripted source; those that begin with `kafka` play in the real broker of `tests.docs.broker`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from logkeep.engine.inline import InlineEngine
from logkeep.model.time import random_token, utc_now
from logkeep.repository.access import open_repository
from logkeep.repository.chain.commits import SourceRef
from logkeep.store.access import open_store
from tests.crash.points import KILLED, in_child, run_backup
from tests.support.datasets.v1_files import HandRecord, write_partition
from tests.support.faults.plan import KillAfter
from tests.support.faults.store import FaultyStore
from tests.support.processes import wait_for
from tests.support.scripted.backup import back_up
from tests.support.zeebe.golden import unpacked_store

NIGHTS = 5
_SOURCE = "prod"
_DIRECTORY = Path("backups")


def _place() -> SourceRef:
    return open_repository(open_store(str(_DIRECTORY))).place(_SOURCE)


def nightly_backups() -> None:
    """One backup each night, the last one three hours ago."""
    place = _place()
    for night in range(NIGHTS):
        moment = utc_now() - timedelta(days=NIGHTS - 1 - night, hours=3)
        back_up(place, {0: 9 + 4 * night, 1: 5 + 2 * night}, InlineEngine(), _stopped(moment), random_token)


def _stopped(moment: datetime) -> Callable[[], datetime]:
    return lambda: moment


def run_dies() -> None:
    """A backup is killed after some of its units."""
    place = _place()
    victim = SourceRef(FaultyStore(place.store, KillAfter(20)), place.repository, place.source)
    how = in_child(lambda: run_backup(victim, {0: 60, 1: 60}))
    if how != KILLED:
        raise SystemExit(f"the run was to be killed; it is {how}")


def next_backup() -> None:
    """The night after: the dead run is recorded as failed, what it left is adopted."""
    run_backup(_place(), {0: 60, 1: 60})


def disk_rots() -> None:
    """One bit of one archived object turns over."""
    rotten = min((_DIRECTORY / "sources" / _SOURCE / "topics").rglob("*.log"))
    data = bytearray(rotten.read_bytes())
    data[0] ^= 1
    rotten.write_bytes(data)


def commit_lost() -> None:
    """Somebody deletes the newest commit."""
    max((_DIRECTORY / "sources" / _SOURCE / "commits").iterdir()).unlink()


_BROKER = Path("../kafka").absolute()


def kafka_starts() -> None:
    """A shop's cluster: two topics and a group that has read some of it. Whoever ends the shell ends it too."""
    from pyrage.x25519 import Identity  # noqa: PLC0415 - a library that other scenes need not load

    _start_broker()
    Path("recipient.txt").write_text(f"{Identity.generate().to_public()}\n")
    _create("orders", 3)
    _create("payments", 1)
    _sell(900, 400)
    _commit("billing", 250)


def orders_archived() -> None:
    """A backup of a topic with three partitions: thirty orders as text, one in Avro, one that was aborted."""
    from tests.support.kafka.compacted_backups import CompactedSource  # noqa: PLC0415 - numpy

    made = CompactedSource(open_repository(open_store(str(_DIRECTORY))).place("shop"), 3, topic="orders", configs={})
    for number in range(30):
        made.time_ms = 1_794_650_400_000 + 60_000 * number
        made.write([(b"customer-%d" % (number % 10), b'{"order": %d, "state": "paid"}' % number)], number % 3)
    made.transaction([(b"customer-7", b'{"order": 99, "state": "timeout"}')], 7, False, 1)
    made.write([(b"customer-5", b"\0\0\0\0\x07\x3c\x08sent")], 2)
    made.back_up()


def a_compacted_topic() -> None:
    """A table of one partition: every account was changed three times."""
    from confluent_kafka import Producer  # noqa: PLC0415

    _create("accounts", 1, {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": os.environ["BROKERS"]})
    for number in range(300):
        producer.produce("accounts", f"balance {number}", f"account {number % 100}", 0)
    if producer.flush(30):
        raise SystemExit("the broker did not take the accounts")


def _start_broker() -> None:
    from tests.docs.broker import READY  # noqa: PLC0415 - a library that other scenes need not load

    with Path("../broker.log").open("wb") as log:
        command = [sys.executable, "-m", "tests.docs.broker", str(_BROKER)]
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while not (_BROKER / READY).exists():
        if running.poll() is not None:
            raise SystemExit(Path("../broker.log").read_text())
        time.sleep(0.1)
    (_BROKER / "pid").write_text(str(running.pid))
    shutil.copy(_BROKER / "ca.pem", "ca.pem")


def _create(topic: str, partitions: int, config: dict[str, str] | None = None) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": os.environ["BROKERS"]})
    for each in admin.create_topics([NewTopic(topic, partitions, 1, config=config or {})]).values():
        each.result(30)


def _sell(orders: int, payments: int) -> None:
    from tests.docs.broker import write  # noqa: PLC0415

    write("orders", orders, 3)
    write("payments", payments, 1)


def _commit(group: str, offset: int) -> None:
    from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition  # noqa: PLC0415

    starting = (
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    )
    consumer = Consumer({"bootstrap.servers": os.environ["BROKERS"], "group.id": group})

    def committed() -> bool:
        try:
            consumer.commit(offsets=[TopicPartition("orders", p, offset) for p in range(3)], asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in starting:
                raise
            return False  # a broker that has just started may not coordinate groups yet
        return True

    wait_for(committed, f"the offsets of group {group}")
    consumer.close()


def kafka_goes_on() -> None:
    """A day's business."""
    _sell(300, 100)


def kafka_forgets() -> None:
    """A weekend without backups: retention removes records that nobody copied."""
    from confluent_kafka import TopicPartition  # noqa: PLC0415
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    _sell(600, 0)
    admin = AdminClient({"bootstrap.servers": os.environ["BROKERS"]})
    for each in admin.delete_records([TopicPartition("orders", 0, 450)]).values():
        each.result(30)


def kafka_begins_anew() -> None:
    """Somebody deletes a topic and makes it again."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": os.environ["BROKERS"]})
    for each in admin.delete_topics(["payments"]).values():
        each.result(30)
    while "payments" in admin.list_topics(timeout=30).topics:
        time.sleep(0.1)
    _create("payments", 1)
    _sell(0, 50)


def registry_writes() -> None:
    """The topic of a registry, as Karapace wrote it, and records with its ids; ten have one of another registry."""
    from confluent_kafka import Producer  # noqa: PLC0415

    from tests.support.kafka.registry_steps import karapace_records  # noqa: PLC0415

    _create("_schemas", 1)
    _create("sales", 1)
    producer = Producer({"bootstrap.servers": os.environ["BROKERS"]})
    for _, key, value in karapace_records():
        producer.produce("_schemas", value, key)
    for number in range(100):
        schema = 42 if number >= 90 else 1 + number % 2
        producer.produce("sales", b"\0" + schema.to_bytes(4, "big") + b"body")
    producer.flush(30)


def registry_lost() -> None:
    """Somebody deletes the topic of the registry."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": os.environ["BROKERS"]})
    for each in admin.delete_topics(["_schemas"]).values():
        each.result(30)
    while "_schemas" in admin.list_topics(timeout=30).topics:
        time.sleep(0.1)


def kafka_lost() -> None:
    """Somebody deletes the shop's topics."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": os.environ["BROKERS"]})
    for each in admin.delete_topics(["orders", "payments"]).values():
        each.result(30)


def kafka_restore_dies() -> None:
    """A restore under another name is killed in the middle of its records."""
    wanted = ["--topics", "orders", "--rename", "orders=orders-copy", "--limit-produce", "2kB", "--yes", "--quiet"]
    target = ["--bootstrap-servers", os.environ["BROKERS"], "--confirm-cluster", _cluster_id()]
    before = _restores_with_producers()
    running = subprocess.Popen(["logkeep", "kafka", "restore", "latest", *wanted, *target], stdin=subprocess.DEVNULL)
    while _restores_with_producers() == before:
        if running.poll() is not None:
            raise SystemExit("the restore was to be killed; it has ended")
        time.sleep(0.05)
    running.kill()
    running.wait()


def _cluster_id() -> str:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    return str(AdminClient({"bootstrap.servers": os.environ["BROKERS"]}).list_topics(timeout=30).cluster_id)


def _restores_with_producers() -> set[Path]:
    return set((_DIRECTORY / "sources" / "shop" / "restores").glob("*/producers.*.json"))


def kafka_moves() -> None:
    """Another cluster, with nothing in it, and a user who may do what a restore does there."""
    from tests.docs.broker import admit  # noqa: PLC0415

    kafka_stops()
    shutil.rmtree(_BROKER)
    _start_broker()
    admit("restorer")


def kafka_stops() -> None:
    """The end of the guide."""
    from tests.docs.broker import READY  # noqa: PLC0415

    os.kill(int((_BROKER / "pid").read_text()), signal.SIGTERM)
    while (_BROKER / READY).exists():
        time.sleep(0.1)


def kafka_dies() -> None:
    """A day's business, and then the power goes. The broker's disk is put into another machine as `broker-1`."""
    from tests.docs.broker import READY  # noqa: PLC0415

    _sell(300, 100)
    os.kill(int((_BROKER / "pid").read_text()), signal.SIGUSR1)
    while (_BROKER / READY).exists():
        time.sleep(0.1)
    shutil.copytree(_BROKER / "data", "broker-1")


def kafka_disk_rots() -> None:
    """One byte inside the first batch of a log turns over."""
    rotten = min(Path("broker-1/orders-0").glob("*.log"))
    data = bytearray(rotten.read_bytes())
    data[100] ^= 0xFF
    rotten.write_bytes(data)


def zookeeper_starts() -> None:
    """A shop keeps its settings in ZooKeeper, which was restarted once. Whoever ends the shell ends the server too."""
    from tests.docs.zookeeper import client, start, stop  # noqa: PLC0415 - a library that other scenes need not load

    start()
    shop = client()
    shop.create("/shop/price", b"42", makepath=True)
    _order(shop, range(50))
    _ended(shop)
    stop()
    start()
    shop = client()
    _order(shop, range(50, 100))
    _ended(shop)


def _order(shop: Any, numbers: range) -> None:
    for number in numbers:
        shop.create(f"/shop/orders/{number}", b"new", makepath=True)


def zookeeper_accident() -> None:
    """Orders come in, and then somebody deletes the whole shop."""
    from tests.docs.zookeeper import client  # noqa: PLC0415

    shop = client()
    _order(shop, range(100, 150))
    shop.delete("/shop", recursive=True)
    _ended(shop)


def ensemble_starts() -> None:
    """Three members, and a shop that keeps its settings in them."""
    from tests.docs.zookeeper import MEMBERS, ensemble_client, start  # noqa: PLC0415

    for name in MEMBERS:
        start(f"{name}.cfg")
    shop = ensemble_client()
    shop.create("/shop/price", b"42", makepath=True)
    _order(shop, range(60))
    _ended(shop)


def ensemble_accident() -> None:
    """A price changes, and then somebody deletes all of it."""
    from tests.docs.zookeeper import ensemble_client  # noqa: PLC0415

    shop, culprit = ensemble_client(), ensemble_client()
    shop.set("/shop/price", b"43")
    culprit.delete("/shop", recursive=True)
    _ended(shop)
    _ended(culprit)


def _ended(client: Any) -> None:
    client.stop()
    client.close()


def ensemble_stops() -> None:
    from tests.docs.zookeeper import MEMBERS, stop  # noqa: PLC0415

    for name in MEMBERS:
        stop(f"{name}.cfg")


def zookeeper_disk_rots() -> None:
    """One byte in the middle of the newest archived log turns over."""
    rotten = max(Path("backups/tonight/txnlogs").iterdir(), key=lambda path: int(path.name.split(".")[1], 16))
    data = bytearray(rotten.read_bytes())
    data[len(data) // 2] ^= 0xFF
    rotten.write_bytes(data)


def zookeeper_nights() -> None:
    """Two weeks of backups, one each night."""
    for days in range(1, 15):
        taken = utc_now() - timedelta(days=days) + timedelta(hours=1)
        night = Path("backups", f"night-{days:02}")
        shutil.copytree("backups/tonight", night)
        info = night / "metadata" / "backup_info.json"
        document = json.loads(info.read_text())
        info.write_text(json.dumps({**document, "backup_id": night.name, "backup_timestamp": taken.isoformat()}))


def zookeeper_stops() -> None:
    """The end of the guide."""
    from tests.docs.zookeeper import stop  # noqa: PLC0415

    stop()


def archive_of_another_tool() -> None:
    """kafka-backup has written two partitions of orders, and the offset of one group."""
    records = [HandRecord(o, b"order-%d" % o, b"paid", 1_700_000_000_000 + o) for o in range(300)]
    write_partition(Path("old-backup"), "orders", 0, {0: records[:120], 120: records[120:200]}, {"billing": 150})
    write_partition(Path("old-backup"), "orders", 1, {0: records[:100]}, {"billing": 60})


def zeebe_has_backups() -> None:
    """A real Zeebe 8.6.0 with three partitions stored two backups."""
    unpacked_store(Path("zeebe-backups"))


def zeebe_disk_rots() -> None:
    """One bit of a stored segment turns over."""
    rotten = Path("zeebe-backups/2/20/0/segments/raft-partition-partition-2-1.log")
    data = bytearray(rotten.read_bytes())
    data[20_000] ^= 1
    rotten.write_bytes(data)


def shop_program() -> None:
    """The reader saves the program of the page."""
    _save_program("applications.md", "shop.py")


def shop_rules() -> None:
    """The reader of the next page has that program, and saves the rules."""
    shop_program()
    _save_program("applications-operation.md", "shop_rules.py")


def _save_program(page: str, name: str) -> None:
    """The first one of a page."""
    text = (Path(__file__).parents[2] / "docs" / "guides" / page).read_text()
    Path(name).write_text(text.split("```python\n", 1)[1].split("```", 1)[0])


SCENES: dict[str, Callable[[], None]] = {
    "shop-program": shop_program,
    "shop-rules": shop_rules,
    "archive-of-another-tool": archive_of_another_tool,
    "nightly-backups": nightly_backups,
    "run-dies": run_dies,
    "next-backup": next_backup,
    "disk-rots": disk_rots,
    "commit-lost": commit_lost,
    "kafka-starts": kafka_starts,
    "orders-archived": orders_archived,
    "a-compacted-topic": a_compacted_topic,
    "kafka-goes-on": kafka_goes_on,
    "kafka-forgets": kafka_forgets,
    "kafka-begins-anew": kafka_begins_anew,
    "kafka-lost": kafka_lost,
    "registry-writes": registry_writes,
    "registry-lost": registry_lost,
    "kafka-restore-dies": kafka_restore_dies,
    "kafka-moves": kafka_moves,
    "kafka-stops": kafka_stops,
    "kafka-dies": kafka_dies,
    "kafka-disk-rots": kafka_disk_rots,
    "zeebe-has-backups": zeebe_has_backups,
    "zeebe-disk-rots": zeebe_disk_rots,
    "zookeeper-starts": zookeeper_starts,
    "zookeeper-accident": zookeeper_accident,
    "zookeeper-ensemble-starts": ensemble_starts,
    "zookeeper-ensemble-accident": ensemble_accident,
    "zookeeper-ensemble-stops": ensemble_stops,
    "zookeeper-disk-rots": zookeeper_disk_rots,
    "zookeeper-nights": zookeeper_nights,
    "zookeeper-stops": zookeeper_stops,
}

if __name__ == "__main__":
    SCENES[sys.argv[1]]()
