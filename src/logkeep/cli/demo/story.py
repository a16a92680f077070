"""The chapters of the demo; this one is Kafka's: a shop, its backups, an accident, a restore."""

import re
from collections.abc import Callable

from logkeep.cli.demo.set_story import backup_set_chapter
from logkeep.cli.demo.shop import Shop
from logkeep.cli.demo.stage import Stage
from logkeep.cli.demo.zookeeper_story import zookeeper_chapter
from logkeep.cli.terminal.text import count
from logkeep.embedded.kafka import EmbeddedKafka
from logkeep.errors import LogkeepError

_SOURCE = "shop"
_TOPICS = ("orders", "payments", "customers")
_ORDERS, _LATER, _PAYMENTS, _CHANGES, _CUSTOMERS = 3_000, 1_000, 20_000, 2_000, 50
_BILLED = 1_200
"""Orders that the group `billing` has read before the accident."""


def make_repository(stage: Stage) -> None:
    """Probe the store, and create a repository in it."""
    stage.repository.mkdir(mode=0o700)
    with stage.step("probe the store"):
        stage.logkeep("store", "probe", f"file://{stage.repository}", "-q")
    with stage.step("create a repository"):
        stage.export("LOGKEEP_REPO", f"file://{stage.repository}")
        stage.logkeep("init")


def kafka_chapter(stage: Stage) -> None:
    """A real broker, from the first order to the restored cluster."""
    kafka = _start_broker(stage)
    shop = Shop(kafka)
    with stage.step("open a shop, with Apache's own tools"):
        _open(shop, stage)
    with stage.step("let two groups read"):
        read = _consume(shop, stage)
    _back_up(stage, shop)
    _show_backups(stage)
    _lose_and_restore(stage, shop)
    with stage.step("let the group continue, with Apache's own consumer"):
        _continue_reading(shop, stage, read)
    with stage.step("show the receipt"):
        stage.logkeep("receipts", "list")
        stage.logkeep("status")
    with stage.step("stop the broker"):
        kafka.stop()


def open_small_shop(stage: Stage) -> EmbeddedKafka:
    """Start a broker with two topics and a group: enough to try commands with, and soon there."""
    kafka = _start_broker(stage)
    shop = Shop(kafka)
    with stage.step("fill it, with Apache's own tools"):
        _take_orders(shop, stage)
        _take_payments(shop, stage)
        _bill(shop, stage)
    return kafka


def _start_broker(stage: Stage) -> EmbeddedKafka:
    kafka = EmbeddedKafka(stage.directory / "kafka", stage.cache, properties={"log.cleaner.backoff.ms": "500"})
    with stage.step(f"start a real Kafka {kafka.release.version} broker"):
        stage.say(f"   its jars (49 MiB) are downloaded once, into {stage.cache}")
        stage.resources.callback(kafka.stop)  # before the start: Ctrl-C may come while it starts
        kafka.start()
        stage.export("LOGKEEP_KAFKA_BOOTSTRAP_SERVERS", kafka.bootstrap)
    return kafka


def _open(shop: Shop, stage: Stage) -> None:
    """Headers, transactions and a compacted topic: a copy of the records alone would lose these."""
    shop.create("customers", 1, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    shop.write("customers", [_customer(number) for number in range(_CHANGES)])
    _take_orders(shop, stage)
    _take_payments(shop, stage)
    # Start a new segment: older ones may then be compacted, which makes holes.
    shop.write("customers", [_customer(number) for number in range(_CHANGES, _CHANGES + _CUSTOMERS)])
    stage.say(f"   customers: {count(_CHANGES + _CUSTOMERS)} addresses of {_CUSTOMERS} customers, in a compacted topic")


def _take_orders(shop: Shop, stage: Stage) -> None:
    shop.create("orders", 3)
    shop.write("orders", [_order(number) for number in range(_ORDERS)])
    stage.say(f"   orders: {count(_ORDERS)} records with keys and headers, in 3 partitions")


def _take_payments(shop: Shop, stage: Stage) -> None:
    shop.create("payments", 1)
    shop.write_in_transactions("payments", _PAYMENTS)
    stage.say(f"   payments: {count(_PAYMENTS)} records in transactions")


def _order(number: int) -> tuple[str, str, str]:
    return f"shop:online,trace:{number:08x}", f"customer-{number % _CUSTOMERS}", f"order {number}"


def _customer(number: int) -> tuple[str, str, str]:
    return "by:import", f"customer-{number % _CUSTOMERS}", f"address {number}"


def _consume(shop: Shop, stage: Stage) -> list[str]:
    read = _bill(shop, stage)
    shop.advance("audit", "payments")
    stage.say("   audit has read all payments")
    return read


def _bill(shop: Shop, stage: Stage) -> list[str]:
    read = shop.read("billing", "orders", _BILLED)
    stage.say(f"   billing has read {count(len(read))} of {count(_ORDERS)} orders, the last of them: {read[-1]}")
    return read


def _back_up(stage: Stage, shop: Shop) -> None:
    with stage.step("back up the cluster"):
        stage.logkeep("kafka", "backup", "--source", _SOURCE, "-q")
    with stage.step("sell more, and back up again: only what is new is copied"):
        shop.write("orders", [_order(number) for number in range(_ORDERS, _ORDERS + _LATER)])
        stage.say(f"   orders: {count(_LATER)} more")
        stage.logkeep("kafka", "backup", "--source", _SOURCE, "-q")


def _show_backups(stage: Stage) -> None:
    with stage.step("list the backups, and verify every byte of the last one"):
        stage.logkeep("list")
        stage.logkeep("info", "latest")
        stage.logkeep("verify", "--level", "data", "-q")
    with stage.step("read archived records, and write them for other tools"):
        stage.logkeep("kafka", "show", "orders", "--last", "3")
        dataset = stage.directory / "dataset"
        stage.logkeep("kafka", "export", "latest", "--format", "parquet", "--to", str(dataset), "-q")
        stage.logkeep("kafka", "dataset", "verify", str(dataset), "-q")


def _lose_and_restore(stage: Stage, shop: Shop) -> None:
    with stage.step("the accident: a user deletes all topics"):
        shop.delete(_TOPICS)
        stage.say(f"   gone: {', '.join(_TOPICS)}, and with them the offsets of their groups")
    with stage.step("plan a restore with --dry-run"):
        planned = stage.logkeep("kafka", "restore", "latest", "--dry-run", "-q")
    with stage.step("restore: every record at its own offset, read back and compared"):
        stage.logkeep("kafka", "restore", "latest", "--confirm-cluster", _cluster(planned), "--yes", "-q")


def _cluster(planned: str) -> str:
    """The id of the target, from the plan: a restore into the source cluster must be confirmed with it."""
    found = re.search(r" to cluster (\S+)", planned)
    if found is None:
        raise LogkeepError("the plan does not name its target", subject="logkeep kafka restore --dry-run")
    return found[1]


def _continue_reading(shop: Shop, stage: Stage, before: list[str]) -> None:
    """The group reads the rest: no order twice, none left out."""
    total = _ORDERS + _LATER
    after = shop.read("billing", "orders", total - len(before))
    stage.say(
        f"   billing had read {count(len(before))} orders before the accident, and has read {count(len(after))} now"
    )
    twice, all_orders = set(before) & set(after), {f"order {number}" for number in range(total)}
    if twice or set(before) | set(after) != all_orders or len(after) != total - len(before):
        raise LogkeepError("the group did not continue at its offset", subject="group billing")
    stage.say(f"   none twice, none left out: it continued with {after[0]}")


Chapter = Callable[[Stage], None]
BEGINNING: Chapter = make_repository
CHAPTERS: dict[str, Chapter] = {"kafka": kafka_chapter, "zookeeper": zookeeper_chapter, "sets": backup_set_chapter}
"""By kind of source, in the order in which they run; the last is of all kinds."""
