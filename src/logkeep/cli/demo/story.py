"""The chapters of the demo, in the order in which they are told."""

from collections.abc import Callable

from logkeep.cli.demo.shop import Shop
from logkeep.cli.demo.stage import Stage
from logkeep.embedded.kafka import EmbeddedKafka

Chapter = Callable[[Stage], None]

_SOURCE = "shop"
_ORDERS, _PAYMENTS, _LATER = 50_000, 20_000, 10_000


def make_repository(stage: Stage) -> None:
    """Probe the store, create a repository in it, list what it holds."""
    url = f"file://{stage.repository}"
    stage.repository.mkdir(mode=0o700)
    with stage.step("ask what the store can do"):
        stage.logkeep("store", "probe", url)
    with stage.step("create a repository"):
        stage.logkeep("init", "-r", url)
    with stage.step("list its backups"):
        stage.logkeep("list", "-r", url)
        stage.logkeep("status", "-r", url)


def back_up_kafka(stage: Stage) -> None:
    """A real broker, two topics and a group; a backup, more records, and a backup of only those."""
    kafka = EmbeddedKafka(stage.directory / "kafka", stage.cache)
    shop = Shop(kafka)
    with stage.step(f"start a real Kafka {kafka.release.version} broker"):
        stage.say(f"   its jars are kept in {stage.cache}")
        stage.resources.callback(kafka.stop)  # before the start: Ctrl-C may come while it starts
        kafka.start()
        stage.say(f"   listening on {kafka.bootstrap}")
    with stage.step("fill it with Apache's own producer, and let a group read up to the end"):
        _fill(shop, stage)
    with stage.step("back the cluster up"):
        _backup(stage, kafka)
    with stage.step("write more, and back up again: only what is new is copied"):
        stage.say(f"   orders: {shop.produce('orders', _LATER)}")
        _backup(stage, kafka)
    with stage.step("stop the broker: from here on there is only the repository"):
        kafka.stop()


def _fill(shop: Shop, stage: Stage) -> None:
    for topic, partitions, records in (("orders", 3, _ORDERS), ("payments", 1, _PAYMENTS)):
        shop.create(topic, partitions)
        stage.say(f"   {topic}: {shop.produce(topic, records)}")
    for line in shop.advance("billing", "orders").strip().splitlines():
        stage.say(f"   {line}")


def _backup(stage: Stage, kafka: EmbeddedKafka) -> None:
    where = ["-r", f"file://{stage.repository}", "--source", _SOURCE]
    stage.logkeep("kafka", "backup", "--bootstrap-servers", kafka.bootstrap, *where)


def look_at_backups(stage: Stage) -> None:
    """What is there, what is in it, and whether every byte still has its hash."""
    url = f"file://{stage.repository}"
    with stage.step("look at the backups"):
        stage.logkeep("list", "-r", url)
        stage.logkeep("info", "latest", "-r", url)
    with stage.step("read and hash every byte of the last one"):
        stage.logkeep("verify", "--level", "data", "-r", url)


STORY: tuple[Chapter, ...] = (make_repository, back_up_kafka, look_at_backups)
